"""Slow twins: algorithms as their papers have them, independent of the compiled ones."""
