"""The values of context variables, read in the thread whose context it is."""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any

from heapwatch.measure.introspection.alone import Ask
from heapwatch.measure.introspection.attributes import Gone
from heapwatch.measure.introspection.roots import Root
from heapwatch.measure.introspection.written import is_written

_MOST = 8
SUFFIX = ".get()"


def context_roots(ask: Ask) -> list[Root]:
    """One root for each context variable that the user's source names and that the answering thread has set.

    A value is asked for at each reading: a copy of the context would keep it alive.
    """
    variables: list[ContextVar[Any]] = ask(_variables) or []
    names = dict.fromkeys(variable.name for variable in variables)
    shown = [name for name in names if is_written(name)][:_MOST]
    return [Root(name + SUFFIX, f"context {name}", partial(_read, name, ask)) for name in shown]


def _read(name: str, ask: Ask) -> Any:
    found = ask(partial(_values, name))
    if not found:
        raise Gone(name)
    return found[0]


def _variables() -> list[ContextVar[Any]]:
    return list(copy_context())


def _values(name: str) -> list[Any]:
    return [value for variable, value in copy_context().items() if variable.name == name]
