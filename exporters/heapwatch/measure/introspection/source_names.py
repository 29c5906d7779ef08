"""The names of a program, as paths and types show them.

Attributes, variables, classes and modules are shown by their names. A key of a dictionary may be what the
program works on, an address or a person: only one that could be a name in its source is shown.
"""

from __future__ import annotations

from heapwatch.measure.introspection.layout import Layout, layout_of

_ANY_ITEM = "[*]"
_ANY_ATTRIBUTE = ".*"
_LONGEST_KEY = 40
_LONGEST_NAME = 60


def is_shown(key: object) -> bool:
    """Whether a key is shown: an identifier of at most 40 characters."""
    return type(key) is str and len(key) <= _LONGEST_KEY and key.isidentifier()


def key_label(key: object) -> str:
    """How the key of a dictionary is shown in a path."""
    return f'["{key}"]' if is_shown(key) else _ANY_ITEM


def attribute_label(name: str) -> str:
    """How an attribute or a variable is shown in a path: any text may be set as one."""
    return f".{name}" if len(name) <= _LONGEST_NAME and name.isidentifier() else _ANY_ATTRIBUTE


def type_of(obj: object) -> str:
    """The name of an object's class."""
    return layout_of(type(obj)).name


def qualified_type_name(layout: Layout) -> str:
    """The name of a class with its module in front, unless that is `builtins` or `__main__`."""
    plain = layout.module in ("builtins", "__main__")
    return layout.name if plain else f"{layout.module}.{layout.name}"
