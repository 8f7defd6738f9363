"""Every process that fwbench starts: workers of frameworks, and pytest sessions."""
