"""Episodic learners: confidence sets, plans, and what they forget."""
