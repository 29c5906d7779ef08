"""Visits of processes in every state of their main thread, also by visitors that are killed at every step."""
