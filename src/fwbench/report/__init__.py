"""What people read of a session."""
