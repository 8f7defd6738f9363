"""Who may be ranked against whom, and what must be said about the numbers."""
