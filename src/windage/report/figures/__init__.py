"""Matplotlib figures of models, runs and live agents; no window opens, nothing global changes."""
