"""What a machine can do at most, measured through the frameworks themselves."""
