"""Studies: these agents, these environments, this many seeds, and whether a difference is real."""
