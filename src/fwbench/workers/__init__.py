"""One process a framework: workers, their environments, and what frameworks declare in them."""
