"""Reports of sessions for people."""
