"""One collector a file: each reads one source and yields its metric families."""
