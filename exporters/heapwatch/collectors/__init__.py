"""One collector for each source: it reads the source and yields its metric families."""
