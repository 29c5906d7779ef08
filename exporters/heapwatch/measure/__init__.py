"""Measures the memory of objects, processes and GPUs."""
