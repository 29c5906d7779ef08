"""Lists the parts of live objects and follows steps to them, without running code or keeping references.

Calls no property, `__getattr__`, `__len__`, `__iter__`, `__eq__` or `__hash__` of the program: it reads
built-in containers by the methods of their built-in base, and attributes from the instance's dict or slots.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple

from heapwatch.measure.introspection.attributes import Gone, attribute_of, attributes_of
from heapwatch.measure.introspection.containers import (
    filled_count,
    first_items,
    is_object_array,
    item_at,
    length_of,
)
from heapwatch.measure.introspection.layout import LEAVES, Layout, layout_of, namespace_of
from heapwatch.measure.introspection.names import key_label
from heapwatch.measure.introspection.roots import awaited_by, suspended_code, suspended_locals

NAMED_KEYS = 24  # a dict of no more text keys is read key by key, as a record
_LONGEST_NAME = 60
_MOST_ATTRIBUTES = 2000
_MOST_REFERENTS = 64
_NOT_FOLLOWED = frozenset(("atom", "class", "module", "text", "raw", "frame_table", "cache"))


class Step(NamedTuple):
    """One step from an object to one of its parts.

    `how` names the reader that `follow` uses, and `key` is its argument: a name or a position. Steps refer to
    no object of the program.
    """

    how: str
    key: str | int
    label: str


def parts(obj: Any, layout: Layout, samples: int) -> Iterator[tuple[Step, Any]]:
    """The parts of an object with the step to each; at most `samples` items of a container.

    Raises:
        RuntimeError: a container changed meanwhile.

    """
    kind = layout.kind
    if kind in _NOT_FOLLOWED:
        return
    if kind in ("list", "tuple", "deque"):
        yield from _items(obj, "item", _GET[kind], length_of(obj, layout) or 0, samples)
    elif kind == "array" and is_object_array(obj):
        length = filled_count(obj)
        for position in _positions(length, samples):
            yield Step("item", position % length, "[*]"), item_at(obj, position % length)
    elif kind == "dict":
        yield from _entries(obj, samples)
    elif kind == "set":
        for position, item in enumerate(first_items(obj, samples, _set_iterator(obj))):
            yield Step("element", position, "[*]"), item
    elif kind in ("function", "method", "partial", "cell", "generator"):
        yield from _callable_parts(obj, kind)
        return
    if layout.namespace is not None:
        yield from _attributes(obj, layout)
    for name, read in layout.slots.items():
        try:
            value = read(obj)
        except AttributeError:
            continue
        yield Step("slot", name, f".{name}"), value
    if kind == "object" and layout.namespace is None and not layout.slots:
        yield from _referents(obj)


def namespace_parts(namespace: dict[Any, Any]) -> Iterator[tuple[Step, Any]]:
    """The names of a module, or of the dict of an instance."""
    names = first_items(namespace, _MOST_ATTRIBUTES, dict.items)
    for name, value in names:
        if type(name) is str and len(name) <= _LONGEST_NAME:
            yield Step("name", name, f".{name}"), value


def follow(obj: Any, step: Step) -> Any:
    """The part of `obj` at the end of `step`.

    Raises:
        Gone: it no longer exists.

    """
    try:
        return _FOLLOW[step.how](obj, step.key)
    except (LookupError, AttributeError, TypeError, ValueError, RuntimeError) as error:
        raise Gone(step.label) from error


def _items(
    obj: Any, how: str, get: Callable[[Any, int], Any], length: int, samples: int
) -> Iterator[tuple[Step, Any]]:
    for position in _positions(length, samples):
        try:
            yield Step(how, position, "[*]"), get(obj, position)
        except IndexError:
            return


def _positions(length: int, samples: int) -> list[int]:
    """Positions at the front, and the last two, where containers usually grow."""
    if length <= samples:
        return list(range(length))
    return [*range(max(1, samples - 2)), *((-2, -1) if samples > 2 else (-1,) if samples > 1 else ())]


def _entries(obj: Any, samples: int) -> Iterator[tuple[Step, Any]]:
    length = dict.__len__(obj)
    if length <= NAMED_KEYS:
        items = list(dict.items(obj))
        if all(type(key) is str for key, _ in items):
            for key, value in items:
                yield Step("key", key, key_label(key)), value
            return
    yield from _items(obj, "value", _value, length, samples)


def _value(obj: Any, position: Any) -> Any:
    if position >= 0:
        return first_items(obj, 1, dict.values, start=position)[0]
    return first_items(obj, 1, dict.values, reversed, start=-position - 1)[0]


def _attributes(obj: Any, layout: Layout) -> Iterator[tuple[Step, Any]]:
    referents = gc.get_referents(obj)
    if not any(type(part) is dict or layout_of(type(part)).kind not in LEAVES for part in referents):
        return
    del referents
    namespace = attributes_of(obj, layout)
    if namespace is not None:
        yield from namespace_parts(namespace)


def _callable_parts(obj: Any, kind: str) -> Iterator[tuple[Step, Any]]:
    """The parts of functions, methods and generators."""
    if kind == "function":
        names = obj.__code__.co_freevars
        for position, cell in enumerate(obj.__closure__ or ()):
            if (value := _cell(cell)) is not None:
                yield Step("closure", position, f".<closure>.{names[position]}"), value
        for name, value in _defaults(obj).items():
            yield Step("default", name, f".<default>.{name}"), value
        yield from namespace_parts(obj.__dict__)
    elif kind == "method":
        yield Step("method", "self", ".__self__"), _object_of_method(obj)
    elif kind == "cell":
        yield Step("cell", 0, ""), _cell(obj)
    elif suspended_code(obj) is not None:
        for name, value in suspended_locals(obj).items():
            yield Step("local", name, f".{name}"), value
        if (awaited := awaited_by(obj)) is not None:
            yield Step("awaited", 0, ""), awaited
    else:
        yield from _referents(obj)


def _referents(obj: Any) -> Iterator[tuple[Step, Any]]:
    for position, value in enumerate(gc.get_referents(obj)[:_MOST_REFERENTS]):
        yield Step("referent", position, ""), value


def _cell(cell: Any) -> Any:
    contents = gc.get_referents(cell)
    return contents[0] if contents else None


def _set_iterator(obj: Any) -> Callable[[Any], Iterator[Any]]:
    return set.__iter__ if issubclass(type(obj), set) else frozenset.__iter__


def _deque_item(obj: Any, position: int) -> Any:
    # A negative position would be counted from what a subclass says is its length.
    return deque.__getitem__(obj, position if position >= 0 else max(0, deque.__len__(obj) + position))


def _defaults(function: FunctionType) -> dict[str, Any]:
    """The default values of a function's arguments, by name."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    return dict(zip(names, defaults, strict=True)) | (function.__kwdefaults__ or {})


def _function(obj: Any) -> Any:
    # What was a function may be an object of the program by now, whose attributes are code.
    if type(obj) is not FunctionType:
        raise TypeError("no function any more")
    return obj


def _object_of_method(obj: Any) -> Any:
    kind = MethodType if type(obj) is MethodType else BuiltinFunctionType
    return vars(kind)["__self__"].__get__(obj)  # a TypeError for what is no method any more


_GET: dict[str, Callable[[Any, int], Any]] = {
    "list": list.__getitem__,
    "tuple": tuple.__getitem__,
    "deque": _deque_item,
    "array": item_at,
}
_FOLLOW: dict[str, Callable[[Any, Any], Any]] = {
    "name": lambda obj, name: obj[name] if type(obj) is dict else attribute_of(obj, name),
    "slot": lambda obj, name: layout_of(type(obj)).slots[name](obj),
    "class": lambda cls, name: namespace_of(cls)[name],
    "local": lambda obj, name: suspended_locals(obj)[name],
    "type": lambda obj, _: type(obj),
    "item": lambda obj, at: _GET[layout_of(type(obj)).kind](obj, at),
    "key": dict.__getitem__,
    "value": _value,
    "element": lambda obj, at: first_items(obj, 1, _set_iterator(obj), start=at)[0],
    "closure": lambda obj, at: _cell(_function(obj).__closure__[at]),
    "default": lambda obj, name: _defaults(_function(obj))[name],
    "method": lambda obj, _: _object_of_method(obj),
    "cell": lambda obj, _: _cell(obj),
    "awaited": lambda obj, _: awaited_by(obj),
    "referent": lambda obj, at: gc.get_referents(obj)[at],
}
