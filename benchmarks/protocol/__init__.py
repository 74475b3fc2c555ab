"""The protocol behind docs/studies/multi-scale.md: problems, configurations, runs, tables.

    python -m benchmarks.protocol            # run what is missing, then write the tables

It can be stopped at any time and goes on where it was; `--minutes` stops it by itself.
"""
