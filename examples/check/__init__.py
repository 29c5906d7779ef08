"""Runs every example healthy and with each of its leaks, and asks the alert rules what they make of it."""
