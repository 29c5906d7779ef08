"""Collectors: each reads one source and yields its metric families."""
