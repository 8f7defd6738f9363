"""What to measure and how: the options, their values, and what they select."""
