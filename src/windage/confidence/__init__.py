"""What a learner is made of: radii, tuning, the window, confidence regions and planning in them."""
