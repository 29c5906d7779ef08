"""Live instances, by their classes."""
