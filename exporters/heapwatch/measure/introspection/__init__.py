"""Reads the objects of a live program without running its code or keeping objects alive."""
