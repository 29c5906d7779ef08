"""Heapwatch: find memory leaks in reinforcement-learning trainers."""

from heapwatch.lifecycle import start
from heapwatch.watch import Watch

__all__ = ["Watch", "start"]
