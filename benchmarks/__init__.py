"""Speed, measured: `make bench` prints ratios of things timed in one run and writes results.json.

Absolute times depend on the machine; ratios travel. A ratio is quoted only after both sides were
seen to have done the same work.
"""
