"""What replicas are made of besides a framework: what joins them, and who is late. Pure values."""
