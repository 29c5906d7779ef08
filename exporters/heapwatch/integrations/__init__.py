"""One adapter a framework; each imports its framework, so import only the one in use."""
