"""Programs: generators of `(held, dropped, watch)` that yield after each change."""


class Item:
    """Something that a program holds."""
