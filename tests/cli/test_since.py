"""``fwbench since``, end to end, with releases in a folder."""
