"""Heapwatch: find memory leaks in reinforcement-learning trainers."""
