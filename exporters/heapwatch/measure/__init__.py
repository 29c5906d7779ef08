"""How much memory objects, buffers, processes and GPUs hold."""
