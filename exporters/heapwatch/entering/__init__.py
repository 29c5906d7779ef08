"""Runs Heapwatch in a process that was started without it: enters from outside, and leaves again."""
