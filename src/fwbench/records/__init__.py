"""Records: what is kept of a measured case, how it is stored and how it is read again."""
