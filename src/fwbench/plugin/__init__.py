"""The pytest plugin: every hook of fwbench, and everything that knows pytest."""
