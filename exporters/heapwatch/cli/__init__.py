"""The `heapwatch` command."""
