"""The memory of GPUs."""
