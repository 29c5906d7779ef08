"""Sources of values: an object, a function or an attribute path, resolved on each read."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from heapwatch.measure.introspection.names import type_of


class SourceGone(Exception):
    """The watched object no longer exists, and its series end."""


class Source:
    """Reads a live object without keeping it alive.

    `Source.of` takes

    * a function, method, lambda or `functools.partial` without arguments: called on each read (a bound
      method keeps its object weakly);
    * a string such as `"replay.buffer"`: attributes of `root()`, resolved on each read;
    * any other object: the object itself. It is referenced weakly if its type allows that. A plain `list` or
      `dict` does not: it is referenced strongly until this source has the last reference.
    """

    def __init__(self, find: Callable[[], Any], path: str = "") -> None:
        self._find = find
        self.path = path  # from the root; empty for other sources

    @classmethod
    def of(cls, spec: Any, root: Callable[[], Any] | None = None) -> Source:
        """Make a source.

        Raises:
            ValueError: a path that is not a dotted name, or one without a root.

        """
        if isinstance(spec, Source):
            return spec
        if isinstance(spec, str):
            return cls(_by_path(spec, root), spec)
        if isinstance(spec, types.MethodType):
            return cls(_by_method(spec))
        return cls(spec if is_accessor(spec) else _by_reference(spec))

    @classmethod
    def constant(cls, value: float) -> Source:
        """A source of a number that never changes."""
        return cls(lambda: value)

    def read(self) -> Any:
        """The present object.

        Raises:
            SourceGone: it was freed.
            Exception: any error of an accessor.

        """
        return self._find()


def is_accessor(spec: Any) -> bool:
    """Whether a source is a function or path that returns the object, and not the object itself."""
    # Before Python 3.11 inspect does not take `items.__len__`, a method wrapper, for a routine.
    accessor_types = (Source, str, functools.partial, types.MethodWrapperType)
    return isinstance(spec, accessor_types) or inspect.isroutine(spec)


def count_of(value: Any) -> float:
    """The value as a number, or its number of items.

    Raises:
        TypeError: it is neither a real number nor sized.
        ValueError: it is negative or not finite.

    """
    if hasattr(type(value), "__len__") and not isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, bool) or not hasattr(type(value), "__float__"):
        raise TypeError(f"expected a number or a sized container, got {type_of(value)}")
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"expected a finite number of at least 0, got {number}")
    return number


def _by_path(path: str, root: Callable[[], Any] | None) -> Callable[[], Any]:
    if not path or not all(part.isidentifier() for part in path.split(".")):
        raise ValueError(
            f"{path!r} is not an attribute path; allowed: names joined by dots, such as 'replay.buffer'"
        )
    if root is None:
        raise ValueError(f"the path {path!r} needs a root: set watch.root first")
    follow = operator.attrgetter(path)
    return lambda: follow(root())


def _by_method(method: types.MethodType) -> Callable[[], Any]:
    try:
        reference = weakref.WeakMethod(method)
    except TypeError:
        return method
    name = method.__qualname__
    return lambda: _alive(reference, f"the object of {name}")()


def _by_reference(obj: Any) -> Callable[[], Any]:
    try:
        reference = weakref.ref(obj)
    except TypeError:
        return _LastHolder(obj)
    name = type_of(obj)
    return lambda: _alive(reference, f"the {name}")


def _alive(reference: Callable[[], Any], description: str) -> Any:
    obj = reference()
    if obj is None:
        raise SourceGone(f"{description} was freed")
    return obj


class _LastHolder:
    """Refers to an object without weak references until no other reference is left."""

    def __init__(self, obj: Any) -> None:
        self._obj = obj
        self._type_name = type_of(obj)

    def __call__(self) -> Any:
        if self._obj is not None and sys.getrefcount(self._obj) <= _ALONE:
            self._obj = None
        if self._obj is None:
            raise SourceGone(f"the {self._type_name} was freed: only the exporter still held it")
        return self._obj


def _count_when_alone() -> int:
    holder = _LastHolder([])
    return sys.getrefcount(holder._obj)


_ALONE = _count_when_alone()
