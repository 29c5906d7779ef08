"""Where CPython keeps the values of an instance's attributes: apart from any dict, since 3.11.

CPython makes the dict when a program asks for `__dict__`. Until then the values lie in an array with one
place more than the attributes, and a byte for each that keeps their order (`new_values` in CPython's
Objects/dictobject.c). From 3.13 on the array is a part of the instance that `sys.getsizeof` does not count
(`_PyInlineValuesSize` in Include/internal/pycore_dict.h). It stays there when the values move to a dict.

No public function tells this. The module is written for CPython 3.10 to 3.14:
`tests/exporters/measure/introspection/test_instance_values.py` fails where a version differs.
"""

from __future__ import annotations

import sys
from typing import Any

from heapwatch.measure.introspection.layout import flags_of

_MANAGED_DICT = 1 << 4  # Py_TPFLAGS_MANAGED_DICT, CPython 3.11 and later
_INLINE_VALUES = 1 << 2  # Py_TPFLAGS_INLINE_VALUES, CPython 3.13 and later
_MOST_INLINE = 29  # most places of the array inside an instance, as `places` counts them
_VALUES_APART = sys.implementation.name == "cpython" and sys.version_info >= (3, 11)


def keeps_values_apart(cls: type) -> bool:
    """Whether instances keep their attributes apart from any dict until somebody asks for `__dict__`."""
    return _VALUES_APART and bool(flags_of(cls) & _MANAGED_DICT)


def values_bytes(cls: type, parts: list[Any]) -> int:
    """Bytes of an instance's attribute values that neither `sys.getsizeof` nor its dict counts.

    Args:
        cls: the class of the instance.
        parts: what the instance refers to: the class beside the values, or beside the dict.

    """
    if not keeps_values_apart(cls):
        return 0
    namespace = next((part for part in parts if type(part) is dict), None) if len(parts) <= 2 else None
    if sys.version_info < (3, 13):
        return 0 if namespace is not None else 8 * len(parts) + (len(parts) + 2 + 7) // 8 * 8
    if not flags_of(cls) & _INLINE_VALUES:
        return 0
    places = min(_MOST_INLINE, len(parts) if namespace is None else len(namespace) + 1)
    return 8 * (places + 1) + (places + 7) // 8 * 8
