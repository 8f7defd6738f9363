"""Named environments: interpreters with packages of their own."""
