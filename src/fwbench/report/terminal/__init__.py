"""Output at the end of a session: tables of times, doubts, and the answer."""
