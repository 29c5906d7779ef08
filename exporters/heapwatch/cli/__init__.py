"""The `heapwatch` command: what a person at a terminal, or a script, asks of trainers."""
