"""Points of a run: taken, written to a file, read again."""
