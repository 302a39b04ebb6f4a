"""The documents that a sheet shows: which are chosen, what decided about each, and where in its text that is."""
