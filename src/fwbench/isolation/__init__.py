"""One framework per process: worker processes, and what frameworks say of themselves in them."""
