"""Trainers as their authors wrote them beside a running stack: what Heapwatch says of them, healthy and leaking."""
