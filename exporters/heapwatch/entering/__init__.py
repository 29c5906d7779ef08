"""Heapwatch in a process that was started without it: entering from outside, staying inside, leaving."""
