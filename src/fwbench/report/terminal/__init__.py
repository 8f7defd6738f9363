"""What is printed when a session ends: tables of times, what is in doubt, and the answer."""
