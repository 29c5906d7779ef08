"""What libraries keep in each of their objects to manage it: the hooks of a torch module, a logger's cache.

A program has thousands of these containers. None is of interest unless it grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heapwatch.measure.introspection.layout import Layout, layout_of, namespace_of
from heapwatch.measure.introspection.reading import length_of

# By the class that makes them, beside the attributes that the class annotates.
_OWNERS = {
    ("torch.nn.modules.module", "Module"): frozenset[str](),
    ("torch.optim.optimizer", "Optimizer"): frozenset(("defaults", "param_groups", "state")),
    ("logging", "Logger"): frozenset(("_cache",)),
    ("logging", "PlaceHolder"): frozenset(("loggerMap",)),
}
MODULES = "_modules"  # where a torch module keeps those that it consists of
PARAMETERS = "_parameters"
_NONE = frozenset[str]()


def bookkeeping_of(layout: Layout) -> frozenset[str]:
    """Names of the attributes in which a library keeps its books of an object with this layout."""
    if layout.bookkeeping is None:
        layout.bookkeeping = _names(layout)
    names: frozenset[str] = layout.bookkeeping
    return names


def _names(layout: Layout) -> frozenset[str]:
    for base in layout.mro:
        of_base = layout_of(base)
        others = _OWNERS.get((of_base.module, of_base.name))
        if others is not None:
            annotated = namespace_of(base).get("__annotations__")
            return others | {str(name) for name in annotated} if type(annotated) is dict else others
    return _NONE


def entries(namespace: Mapping[Any, Any], names: frozenset[str]) -> int:
    """Number of entries in all containers under these names of an object's attributes."""
    found = (namespace.get(name) for name in names)
    return sum(length_of(one, layout_of(type(one))) or 0 for one in found if type(one) is not str)
