"""HOW each framework computes: a package a framework, found through entry points."""
