"""Time that means something: a clock that waits, a warm-up that ends when it should."""
