"""One cell of the grid, made real: bind, verify, warm up, measure, record."""
