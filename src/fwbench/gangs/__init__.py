"""Cases that several processes do together: gangs, their roles, their clock and their checks."""
