"""What objects, processes and GPUs hold: each of these in a package of its own."""
