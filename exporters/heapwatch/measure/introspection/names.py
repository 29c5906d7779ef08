"""Formats names of a program for paths, findings and messages.

Shows names of attributes, variables, classes, modules and functions. A dictionary key is data: it is shown
only if it could be such a name. Values are never shown.
"""

from __future__ import annotations

from heapwatch.measure.introspection.layout import Layout, layout_of

LONGEST_KEY = 40


def is_shown(key: object) -> bool:
    """Whether the key of a dictionary is an identifier of at most 40 characters."""
    return type(key) is str and len(key) <= LONGEST_KEY and key.isidentifier()


def key_label(key: object) -> str:
    """How the key of a dictionary is shown in a path."""
    return f'["{key}"]' if is_shown(key) else "[*]"


def type_of(obj: object) -> str:
    """The name of an object's class."""
    return layout_of(type(obj)).name


def qualified_type_name(layout: Layout) -> str:
    """The name of a class with its module in front, unless that is `builtins` or `__main__`."""
    name, module = layout.name, layout.module
    return name if module in ("builtins", "__main__") else f"{module}.{name}"
