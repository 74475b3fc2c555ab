"""The compiled loops: the only files that import numba. Arrays in, arrays out."""
