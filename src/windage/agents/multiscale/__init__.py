"""Learners that weigh many windows at once."""
