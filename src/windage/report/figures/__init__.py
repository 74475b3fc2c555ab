"""Matplotlib figures of models and runs; no window opens, nothing global changes."""
