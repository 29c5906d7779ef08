"""Receives alerts, decides, acts once on each, and checks the effect."""
