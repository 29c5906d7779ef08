"""Finds the limits that a program sets to the length of its containers, in its compiled code.

A limit is one of these: the number that a length is compared with before an item is added, removed or
overwritten; the length to which a slice cuts a container; the modulus by which positions are computed. The
instructions of a function are read in their order, with a stack of what is known about each operand.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Collection, Iterable, Iterator
from types import CodeType
from typing import Any, Literal, NamedTuple

Sort = Literal["name", "number", "length", "modulo", "difference", "comparison", "slice", "call", "other"]
_STORES = ("STORE_", "DELETE_", "POP_", "RETURN_", "RAISE_", "YIELD_")
_CONVERSIONS = frozenset(("int", "float", "round"))
_NOT_CALLED = ("PRECALL", "KW_NAMES", "CACHE", "EXTENDED_ARG", "RESUME", "NOP", "TO_BOOL", "NOT_TAKEN")
_ORDER = ("<", "<=", ">", ">=", "==")
SETTING_UP = ("__init__", "__post_init__", "__new__", "__setstate__", "setup")
_MOST_INSTRUCTIONS = 20_000


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


class _Operand(NamedTuple):
    sort: Sort
    value: Any = None
    parts: tuple[Any, ...] = ()


class _Guard(NamedTuple):
    """A comparison, and the offsets between which the instructions run only if it holds."""

    comparison: _Operand
    begin: int
    end: int


class _Reading(NamedTuple):
    """What a code object does that matters for limits."""

    guards: list[_Guard]
    returned: list[_Operand]
    stored: list[tuple[_Operand, _Operand]]  # container and key of each item that is stored
    cut: list[tuple[_Operand, _Operand]]  # container and the slice that is kept or deleted
    bound: dict[str, _Operand]  # the value that each name is bound to
    calls: list[_Guard]  # guards whose condition is a call
    lines: dict[int, int]


_OTHER = _Operand("other")


def instructions_of(code: CodeType) -> Iterator[tuple[dis.Instruction, int]]:
    """Instructions with their line; only the first ones of very long code."""
    line = code.co_firstlineno
    for count, instruction in enumerate(dis.get_instructions(code)):
        if count > _MOST_INSTRUCTIONS:
            return
        positions = getattr(instruction, "positions", None)
        if positions is not None and positions.lineno is not None:
            line = positions.lineno
        elif positions is None and instruction.starts_line is not None:
            line = int(instruction.starts_line)
        yield instruction, line


def limits_of(name: str, codes: Iterable[CodeType], lines: Collection[int]) -> list[Limit]:
    """The limits of a container of this name.

    Args:
        name: name of the container.
        codes: code of the functions that may use it.
        lines: lines that add an item to it, remove one or overwrite one.

    """
    codes = list(codes)
    naming = [code for code in codes if mentions(code, name)]
    readings = [_read(code) for code in naming]
    called = {str(guard.comparison.value) for reading in readings for guard in reading.calls}
    returned = {
        code.co_name: comparison
        for code in codes
        if code.co_name in called
        for comparison in _read(code).returned
    }
    cycles = {
        target: operand.parts[1]
        for reading in readings
        for target, operand in reading.bound.items()
        if operand.sort == "modulo"
    }
    found: dict[Limit, None] = {}
    for reading in readings:
        guards = [
            *reading.guards,
            *(
                guard._replace(comparison=returned[guard.comparison.value])
                for guard in reading.calls
                if guard.comparison.value in returned
            ),
        ]
        for guard in guards:
            guarded = {line for at, line in reading.lines.items() if guard.begin <= at < guard.end}
            if guarded & set(lines):
                found.update(dict.fromkeys(_limits_in(guard.comparison, name)))
        for container, key in reading.stored:
            if container == _Operand("name", name):
                cycle = key.parts[1] if key.sort == "modulo" else cycles.get(str(key.value), _OTHER)
                if cycle.sort in ("name", "number"):
                    found[Limit(cycle.value)] = None
        for container, cut in reading.cut:
            if container == _Operand("name", name):
                ends = [part.value for part in cut.parts if part.sort in ("name", "number") and part.value]
                found[Limit(ends[0] if len(ends) == 1 else None)] = None
    moving = _moving(naming, readings)
    return [limit for limit in found if limit.limit not in moving]


def _moving(codes: list[CodeType], readings: list[_Reading]) -> set[str]:
    """Attributes and globals that the program rebinds while it runs: positions and counts, not limits."""
    return {
        name
        for code, reading in zip(codes, readings, strict=True)
        if code.co_name not in SETTING_UP and code.co_flags & inspect.CO_OPTIMIZED
        for name in reading.bound
        if name not in (*code.co_varnames, *code.co_cellvars)
    }


def mentions(code: CodeType, name: str) -> bool:
    """Whether a code object uses a name, of a variable or of an attribute."""
    return name in (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)


def _limits_in(comparison: _Operand, name: str) -> Iterator[Limit]:
    operator, (left, right) = comparison.value, comparison.parts
    if left.sort == "difference" and right == _Operand("number", 0):
        left, right = left.parts
    for measure, limit in ((left, right), (right, left)):
        value = limit.value if limit.sort in ("name", "number") else None
        if measure == _Operand("length", name):
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


def _read(code: CodeType) -> _Reading:
    reading = _Reading([], [], [], [], {}, [], {})
    stack: list[_Operand] = []
    for instruction, line in instructions_of(code):
        reading.lines[instruction.offset] = line
        if instruction.opname not in _NOT_CALLED:
            _follow(instruction, stack, reading)
    return reading


def _follow(instruction: dis.Instruction, stack: list[_Operand], reading: _Reading) -> None:
    operation, value = instruction.opname, instruction.argval

    def pop() -> _Operand:
        return stack.pop() if stack else _OTHER

    if operation in ("LOAD_METHOD", "LOAD_ATTR", "LOAD_SUPER_ATTR"):
        method = operation == "LOAD_METHOD" or _effect(instruction) > 0
        pop()
        stack += [_Operand("name", value), *([_OTHER] if method else [])]
    elif operation in ("LOAD_CONST", "LOAD_SMALL_INT"):
        stack.append(_Operand("number", value) if type(value) is int else _OTHER)
    elif operation.startswith("LOAD_") and type(value) is tuple:
        stack += [_known(name, reading) for name in value]
    elif operation.startswith(("LOAD_FAST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")):
        stack += [_OTHER] * (_effect(instruction) - 1)
        stack.append(_known(value, reading))
    elif operation in ("CALL", "CALL_FUNCTION", "CALL_METHOD", "CALL_KW"):
        count = (instruction.arg or 0) + {"CALL_FUNCTION": 1, "CALL_KW": 3}.get(operation, 2)
        taken = [pop() for _ in range(count)]
        names = [one.value for one in taken if one.sort == "name"]
        stack.append(_result_of(taken, names))
    elif operation == "COMPARE_OP":
        right, left = pop(), pop()
        operator = next((one for one in (value, instruction.argrepr[5:-1]) if one in _ORDER), "")
        stack.append(_Operand("comparison", operator, (left, right)) if operator else _OTHER)
    elif operation.startswith(("BINARY_", "INPLACE_")) and operation != "BINARY_SLICE":
        right, left = pop(), pop()
        stack.append(_combined(instruction, left, right))
    elif operation == "BUILD_SLICE":
        taken = [pop() for _ in range(instruction.arg or 2)]
        stack.append(_Operand("slice", None, tuple(taken)))
    elif operation == "BINARY_SLICE":
        taken = [pop(), pop()]
        stack.append(_Operand("slice", None, (*taken, pop())))
    elif operation == "STORE_SUBSCR":
        key, container = pop(), pop()
        pop()
        reading.stored.append((container, key))
    elif operation == "DELETE_SUBSCR":
        key, container = pop(), pop()
        if key.sort == "slice":
            reading.cut.append((container, key))
    elif operation == "STORE_SLICE":
        taken = [pop(), pop()]
        container = pop()
        pop()
        reading.cut.append((container, _Operand("slice", None, tuple(taken))))
    elif operation in ("STORE_ATTR", "STORE_FAST", "STORE_GLOBAL", "STORE_NAME", "STORE_DEREF"):
        if operation == "STORE_ATTR":
            pop()
        made = pop()
        if made.sort == "slice" and _Operand("name", value) in made.parts:
            rest = tuple(part for part in made.parts if part != _Operand("name", value))
            reading.cut.append((_Operand("name", value), _Operand("slice", None, rest)))
        known = reading.bound.get(value)
        if known is None or known.sort != "modulo":
            reading.bound[value] = made
    elif "JUMP" in operation and "IF" in operation:
        condition = pop()
        until = value if type(value) is int else instruction.offset
        if condition.sort == "comparison":
            reading.guards.append(_Guard(condition, instruction.offset, until))
        elif condition.sort == "call":
            reading.calls.append(_Guard(condition, instruction.offset, until))
    elif operation == "RETURN_VALUE":
        made = pop()
        if made.sort == "comparison":
            reading.returned.append(made)
    elif operation in ("COPY", "DUP_TOP"):
        depth = instruction.arg or 1
        stack.append(stack[-depth] if len(stack) >= depth else _OTHER)
    elif operation in ("SWAP", "ROT_TWO"):
        depth = instruction.arg or 2
        if len(stack) >= depth:
            stack[-1], stack[-depth] = stack[-depth], stack[-1]
    elif operation != "UNARY_NEGATIVE":
        effect = _effect(instruction)
        if operation.startswith(_STORES):
            consumed, results = -effect, 0
        elif effect < 0 or operation.startswith(("UNARY", "GET_", "BUILD")):
            consumed, results = 1 - effect, 1
        else:
            consumed, results = 0, effect
        for _ in range(consumed):
            pop()
        stack += [_OTHER] * results


def _known(name: str, reading: _Reading) -> _Operand:
    """The value that a variable of this name was bound to, where it is known; else the name."""
    made = reading.bound.get(name, _OTHER)
    return (
        made if made.sort in ("name", "number", "length", "modulo", "difference") else _Operand("name", name)
    )


def _result_of(taken: list[_Operand], names: list[Any]) -> _Operand:
    if len(names) and names[-1] == "len" and taken and taken[0].sort == "name":
        return _Operand("length", taken[0].value)
    if len(names) and names[-1] in _CONVERSIONS and taken[0].sort in ("modulo", "length", "name"):
        return taken[0]
    return _Operand("call", names[-1]) if names else _OTHER


def _combined(instruction: dis.Instruction, left: _Operand, right: _Operand) -> _Operand:
    operation, sign = instruction.opname, instruction.argrepr
    if operation == "BINARY_SUBSCR" or sign == "[]":
        return _Operand("slice", None, (*right.parts, left)) if right.sort == "slice" else _OTHER
    if operation.endswith(("MODULO", "REMAINDER")) or sign in ("%", "%="):
        return _Operand("modulo", None, (left, right))
    if operation.endswith("SUBTRACT") or sign == "-":
        return _Operand("difference", None, (left, right))
    return _OTHER


def _effect(instruction: dis.Instruction) -> int:
    takes = instruction.opcode >= dis.HAVE_ARGUMENT
    try:
        return dis.stack_effect(instruction.opcode, instruction.arg if takes else None, jump=False)
    except ValueError:
        return 0
