"""Progress for people: what is being done, how far it is, and how long it will still take."""
