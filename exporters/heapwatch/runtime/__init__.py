"""Sampling of a trainer: safe point, sources, cleanup, exposition; and shared helpers."""
