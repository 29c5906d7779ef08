"""Finds the limits that a program sets to the length of its containers, in its source.

A limit is one of these: the number that a length is compared with before an item is added, removed or
overwritten; the length to which a slice cuts a container; the modulus by which positions are computed.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator
from types import CodeType
from typing import NamedTuple

from heapwatch.explain.source.sites import mentions
from heapwatch.explain.source.statements import SETTING_UP, Operand, statements_of


class Limit(NamedTuple):
    """A limit of a container.

    Attributes:
        limit: a number, or the name of one; None if the code shows neither.
        measure: name of the number that is compared with the limit; None if it is the container's length.
        of: name of another container whose length is compared with the limit; None if there is none.

    """

    limit: int | str | None
    measure: str | None = None
    of: str | None = None


def limits_of(name: str, codes: Iterable[CodeType], lines: Collection[int]) -> list[Limit]:
    """The limits of a container of this name.

    Args:
        name: name of the container.
        codes: code of the functions that may use it.
        lines: lines that add an item to it, remove one or overwrite one.

    """
    codes = list(codes)
    naming = [code for code in codes if mentions(code, name)]
    read = [statements_of(code) for code in naming]
    asked = {test.value for one in read for test, *_ in one.guards if test.sort == "call"}
    answers = {
        code.co_name: test
        for code in codes
        if code.co_name in asked
        for _, tests in statements_of(code).returns
        for test in tests
    }
    cycles = {
        target: value.parts[1]
        for one in read
        for target, value in one.bound.items()
        if value.sort == "modulo"
    }
    # There may be one in what cannot be read.
    found: dict[Limit, None] = {Limit(None): None} if any(one.missing for one in read) else {}
    for code, one in zip(naming, read, strict=True):
        for test, first, last in one.guards:
            test = answers.get(test.value, test) if test.sort == "call" else test
            if _is_end(test, name, code):
                continue
            if test.sort == "comparison" and any(first <= line <= last for line in lines):
                found.update(dict.fromkeys(_limits_in(test, name)))
        for container, key in one.keys:
            cycle = key.parts[1] if key.sort == "modulo" else cycles.get(key.value)
            if container == name and cycle is not None and cycle.sort in ("name", "number"):
                found[Limit(cycle.value)] = None
        for container, ends in one.cuts:
            if container == name:
                known = [end.value for end in ends if end.sort in ("name", "number") and end.value]
                found[Limit(known[0] if len(known) == 1 else None)] = None
    moving = set().union(*map(_moving, naming))
    return [limit for limit in found if limit.limit not in moving]


def _moving(code: CodeType) -> set[str]:
    """Attributes and globals that the program rebinds while it runs: positions and counts, not limits."""
    if code.co_name in SETTING_UP or not code.co_flags & inspect.CO_OPTIMIZED:
        return set()
    return set(statements_of(code).bound) - {*code.co_varnames, *code.co_cellvars}


def _is_end(test: Operand, name: str, code: CodeType) -> bool:
    """Whether it asks if an index that the function is given is the end of the container."""
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    others = [part for part in test.parts if part != Operand("length", name)]
    return test.value == "==" and len(others) == 1 and others[0].sort == "name" and others[0].value in given


def _limits_in(comparison: Operand, name: str) -> Iterator[Limit]:
    operator, (left, right) = comparison.value, comparison.parts
    if left.sort == "difference" and right == Operand("number", 0):
        left, right = left.parts
    for measure, limit in ((left, right), (right, left)):
        value = limit.value if limit.sort in ("name", "number") else None
        if measure == Operand("length", name):
            if value != 0 and (value is not None or operator != "=="):
                yield Limit(value)
                return
        elif measure.sort == "length" and value:
            yield Limit(value, of=measure.value)
            return
    # Of two numbers that are compared, the one on the larger side is counted and the other is its limit.
    large, small = (left, right) if operator.startswith(">") else (right, left)
    if operator != "==" and large.sort == "name" and small.sort in ("name", "number") and small.value:
        yield Limit(small.value, measure=large.value)
