"""Options: their table, how text becomes values, and the values together."""
