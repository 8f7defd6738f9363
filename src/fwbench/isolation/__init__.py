"""One framework per process: the parent, the worker, and what passes between them."""
