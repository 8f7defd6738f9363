"""Ceilings of a machine: its best rates, measured through the frameworks themselves."""
