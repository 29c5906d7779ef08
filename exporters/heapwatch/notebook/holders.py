"""What the variables of a notebook hold, and what IPython itself keeps: results, inputs, the last error.

Every byte counts once: for the variables, in the order of their definition, then for what IPython keeps. So
the bytes of `Out[12]` are those that are freed when IPython drops it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from heapwatch.explain.remedies import DROP_RESULTS
from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.written import type_of
from heapwatch.measure.sizing.sampling import ContainerChanged
from heapwatch.measure.sizing.traversal import OutOfTime, Walk

_SAMPLES = 32
_SECONDS = 3.0  # CPU time for all; the notebook waits meanwhile
DROP_INPUTS = "`%reset -f in`"
DROP_ERROR = "run `1/0`: the next error takes its place"


class Holder(NamedTuple):
    """A name and the bytes that it holds, without those of the names before it.

    Attributes:
        name: as in a cell, such as `agent` or `Out[12]`.
        type: in words.
        bytes: on the heap, on a GPU and in shared memory.
        error: standard error of the bytes, which are an estimate for long containers.
        remedy: how to drop it in IPython; None for a variable.

    """

    name: str
    type: str
    bytes: int
    error: float
    remedy: str | None = None


def holders(shell: Any) -> tuple[list[Holder], list[str]]:
    """What each variable and each of IPython's own holders holds, and the names that took too long.

    Args:
        shell: the `InteractiveShell`.

    """
    namespace = shell.user_ns
    variables = dict(user_variables(shell))
    apart = [*map(id, (shell, namespace, shell.user_ns_hidden, namespace.get("_oh"), namespace.get("_ih")))]
    walk = Walk(_SAMPLES, _SECONDS, [*apart, *map(id, variables.values())])
    found: list[Holder] = []
    unmeasured: list[str] = []
    seen: set[int] = set()
    for name, obj in variables.items():
        if id(obj) not in seen:
            seen.add(id(obj))
            _measure(walk, name, obj, None, found, unmeasured)
    for name, obj, remedy in kept_by_ipython(shell):
        if not walk.has_counted(obj):
            _measure(walk, name, obj, remedy, found, unmeasured)
    return found, unmeasured


def user_variables(shell: Any) -> Iterator[tuple[str, Any]]:
    """The variables that cells have set, without IPython's own names."""
    hidden = shell.user_ns_hidden
    for name, obj in list(shell.user_ns.items()):
        if name not in hidden:
            yield name, obj


def kept_by_ipython(shell: Any) -> Iterator[tuple[str, Any, str]]:
    """What IPython keeps of earlier cells: its name, the object, and how to drop it."""
    namespace = shell.user_ns
    results = namespace.get("_oh")
    if type(results) is dict:
        for number, obj in list(results.items()):
            if type(number) is int:
                yield f"Out[{number}]", obj, DROP_RESULTS
    for name in ("_", "__", "___"):  # without a cache of results these keep the last three
        if name in namespace:
            yield name, namespace[name], DROP_RESULTS
    if "_ih" in namespace:
        yield "In", list(namespace["_ih"]), DROP_INPUTS
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if isinstance(error, BaseException):
        yield "the last error", error, DROP_ERROR


def _measure(
    walk: Walk, name: str, obj: Any, remedy: str | None, found: list[Holder], unmeasured: list[str]
) -> None:
    layout = layout_of(type(obj))
    if layout.kind in ("atom", "module", "class") or layout.module.startswith("heapwatch."):
        return
    try:
        tally = walk.everything([obj], _SAMPLES)[0]
    except (OutOfTime, ContainerChanged, RuntimeError):
        unmeasured.append(name)
        return
    held = sum(tally.held.get(place, 0.0) for place in ("heap", "gpu", "shared"))
    found.append(Holder(name, type_of(obj), round(held), math.sqrt(tally.variance), remedy))
