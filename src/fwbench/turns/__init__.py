"""Turns: processes that are compared are alive together, and make short visits one by one."""
