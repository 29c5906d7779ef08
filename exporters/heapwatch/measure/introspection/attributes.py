"""Reads the attributes of an instance without creating its `__dict__`.

CPython keeps the values of attributes apart from any dict, from 3.11 on, until somebody asks for `__dict__`.
In 3.11 and 3.12 each access to an attribute of that instance is slower from then on: the specialized
instruction for values that lie apart (LOAD_ATTR_INSTANCE_VALUE) no longer fits; see issue 115776 of CPython,
which changed it in 3.13. Whoever asks a trainer's environment, buffers and optimizer for `__dict__` once
makes a small training loop 2 to 3 % slower. In all these versions the dict stays: 64 bytes an instance.

So this module reads values by name with `object.__getattribute__`, which runs no code of the program for a
name that the class does not define. It takes the names from assignments in the class's code. The referents
that the garbage collector lists show whether any were missed; only then it creates the dict.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from opcode import EXTENDED_ARG, opmap
from types import CodeType, FunctionType
from typing import Any

from heapwatch.measure.introspection.containers import first_items, length_of
from heapwatch.measure.introspection.instance_values import keeps_values_apart
from heapwatch.measure.introspection.layout import LEAVES, Layout, layout_of, namespace_of

_MOST_NAMES = 4000
_MOST_HELD = 200  # values that lie apart are 30 at most
_STORE_ATTR = opmap["STORE_ATTR"]
_get = object.__getattribute__
_MISSING = object()


class Gone(LookupError):
    """The part at the end of a step no longer exists."""


def attributes_of(obj: Any, layout: Layout | None = None) -> Any:
    """The attributes in the dict of an instance, or those that would be in it; None if it has no dict.

    The result may be the instance's own dict: do not change it, and do not keep it.
    """
    layout = layout or layout_of(type(obj))
    if layout.namespace is None:
        return None
    if not _lie_apart(obj, layout):
        namespace = layout.namespace(obj)
        return namespace if type(namespace) is dict else None
    referents = gc.get_referents(obj)
    if len(referents) > _MOST_HELD or _has_dict(obj, layout, referents):
        return layout.namespace(obj)
    missing = {
        id(part) for part in referents if type(part) is dict or layout_of(type(part)).kind not in LEAVES
    }
    missing -= set(map(id, _slot_values(obj, layout)))
    confirmed, candidates = layout.names or ([], _assigned_names(layout))
    values = _read(obj, layout, confirmed)
    missing -= set(map(id, values.values()))
    if missing or not confirmed:
        others = _read(obj, layout, candidates)
        layout.names = [*confirmed, *others], [name for name in candidates if name not in others]
        missing -= set(map(id, others.values()))
        values |= others
    return layout.namespace(obj) if missing else values


def attribute_of(obj: Any, name: str) -> Any:
    """One attribute in the dict of an instance.

    Raises:
        LookupError: it is not there.

    """
    layout = layout_of(type(obj))
    if layout.namespace is None:
        raise LookupError(name)
    value = _value(obj, layout, name) if _lie_apart(obj, layout) else _MISSING
    return dict.__getitem__(layout.namespace(obj), name) if value is _MISSING else value


def _assigned_names(layout: Layout) -> list[str]:
    """The names of attributes that the code of a class and of its bases assigns."""
    names = dict.fromkeys(chain.from_iterable(map(_assigned_in, layout.mro)))
    return list(islice(names, _MOST_NAMES))


def _read(obj: Any, layout: Layout, names: list[str]) -> dict[str, Any]:
    values = ((name, _value(obj, layout, name)) for name in names)
    return {name: value for name, value in values if value is not _MISSING}


def _value(obj: Any, layout: Layout, name: str) -> Any:
    """An attribute of an instance; missing where the class has the same object, or a descriptor."""
    of_class = _of_class(layout, name)
    if _is_descriptor(of_class):  # the class may have been changed
        return _MISSING
    try:
        value = _get(obj, name)
    except AttributeError:
        return _MISSING
    return _MISSING if value is of_class else value


def _lie_apart(obj: Any, layout: Layout) -> bool:
    return layout.kind == "object" and keeps_values_apart(type(obj))


def _has_dict(obj: Any, layout: Layout, referents: Sequence[Any]) -> bool:
    """Whether the dict of an instance is made: it refers to the dict instead of the values.

    A dict that is the only value looks the same, but has other items. Where there are several values, one of
    them may have the same items: arguments that a constructor keeps, for example.
    """
    count = len(referents) - any(part is type(obj) for part in referents)
    namespace = next((part for part in referents if type(part) is dict), None)
    if namespace is None or count - len(_slot_values(obj, layout)) != 1:
        return False
    return any(
        type(name) is str and _value(obj, layout, name) is value
        for name, value in first_items(namespace, 3, dict.items)
    )


def _slot_values(obj: Any, layout: Layout) -> list[Any]:
    values = []
    for read in layout.slots.values():
        with suppress(AttributeError):
            values.append(read(obj))
    return values


def _of_class(layout: Layout, name: str) -> Any:
    for base in layout.mro:
        value = namespace_of(base).get(name, _MISSING)
        if value is not _MISSING:
            return value
    return _MISSING


def _is_descriptor(value: Any) -> bool:
    """Whether reading an attribute for which the class has this value may run code, as of a property."""
    return value is not _MISSING and any(
        "__get__" in namespace_of(base) for base in layout_of(type(value)).mro
    )


def code_in(values: Iterable[Any]) -> Iterator[CodeType]:
    """The code of functions and methods, of the functions inside them and of those that they wrap."""
    for value in values:
        kind = type(value)
        if kind is staticmethod or kind is classmethod:
            value = value.__func__
        elif kind is property:
            value = value.fget
        if type(value) is FunctionType:
            referents = gc.get_referents(*value.__closure__ or ())  # another thread may be emptying a cell
            for function in (value, *referents, getattr(value, "__wrapped__", None)):
                if type(function) is FunctionType:
                    yield from nested_code(function.__code__)


def nested_code(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from nested_code(constant)


def _assigned_in(cls: type) -> tuple[str, ...]:
    """The names that the code of a class assigns or annotates; read once for all its subclasses."""
    layout = layout_of(cls)
    if layout.assigned is None:
        codes = code_in(list(namespace_of(cls).values()))
        names = dict.fromkeys(chain(chain.from_iterable(map(_names_in_code, codes)), _annotated_names(cls)))
        layout.assigned = tuple(names)
    return layout.assigned


def _names_in_code(code: CodeType) -> Iterator[str]:
    """The names in statements such as `self.name = value`."""
    operations, arguments = code.co_code[::2], code.co_code[1::2]
    position = operations.find(_STORE_ATTR)
    while position >= 0:
        prefix = arguments[position - 1] << 8 if position and operations[position - 1] == EXTENDED_ARG else 0
        yield code.co_names[prefix | arguments[position]]
        position = operations.find(_STORE_ATTR, position + 1)


def _annotated_names(cls: type) -> list[str]:
    annotations = namespace_of(cls).get("__annotations__")
    return [name for name in annotations if type(name) is str] if type(annotations) is dict else []


# What libraries keep in each of their objects to manage it: the hooks of a torch module, a logger's cache. A
# program has thousands of these containers; none is of interest unless it grows. By the class that makes
# them, beside the attributes that the class annotates.
_BOOKKEEPERS = {
    ("torch.nn.modules.module", "Module"): frozenset[str](),
    ("torch.optim.optimizer", "Optimizer"): frozenset(("defaults", "param_groups", "state")),
    ("logging", "Logger"): frozenset(("_cache",)),
    ("logging", "PlaceHolder"): frozenset(("loggerMap",)),
}
MODULES = "_modules"  # where a torch module keeps those that it consists of
PARAMETERS = "_parameters"


def bookkeeping_of(layout: Layout) -> frozenset[str]:
    """Names of the attributes in which a library keeps its books of an object with this layout."""
    if layout.bookkeeping is None:
        layout.bookkeeping = next(_books(layout), frozenset())
    return layout.bookkeeping


def _books(layout: Layout) -> Iterator[frozenset[str]]:
    for cls in layout.mro:
        base = layout_of(cls)
        names = _BOOKKEEPERS.get((base.module, base.name))
        if names is not None:
            yield names.union(_annotated_names(cls))


def entries(namespace: Mapping[Any, Any], names: frozenset[str]) -> int:
    """Number of entries in all containers under these names of an object's attributes."""
    containers = (namespace.get(name) for name in names)
    return sum(length_of(one, layout_of(type(one))) or 0 for one in containers if type(one) is not str)
