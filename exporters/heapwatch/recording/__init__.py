"""Records the points of a run, writes them to a file and reads them."""
