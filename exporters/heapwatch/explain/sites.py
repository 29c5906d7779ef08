"""Finds the lines that fill and empty a container, in the compiled code of the program.

No code is run or traced. The code objects of the user's functions are searched for instructions that load a
variable or attribute with the container's name and then call `append`, store under a key, or bind the name to
a value made from the old one.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any, Literal, NamedTuple

from heapwatch.explain.limits import SETTING_UP, instructions_of, mentions
from heapwatch.measure.layout import layout_of, namespace_of
from heapwatch.measure.roots import is_user_file, is_user_module, module_namespace, running_code, user_modules

GROWS = frozenset(
    ("append", "appendleft", "extend", "extendleft", "add", "insert", "update", "setdefault", "put",
     "put_nowait", "push", "concat", "concatenate", "cat", "hstack", "vstack", "__setitem__")
)  # fmt: skip
_SHRINKS = frozenset(
    ("pop", "popleft", "popitem", "clear", "remove", "discard", "get", "get_nowait", "cache_clear", "flush")
)
_PASSED_TO = frozenset(("heappush", "insort", "insort_left", "insort_right"))
_SKIPPED = frozenset(
    ("CACHE", "PUSH_NULL", "NOP", "COPY", "COPY_FREE_VARS", "RESUME", "EXTENDED_ARG", "TO_BOOL")
)
_SLICES = ("BUILD_SLICE", "BINARY_SLICE")
_CALLED_BY = ("LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME")
_NEAR = 14
_STATEMENT = 80
_MOST_CODE = 4000


class Site(NamedTuple):
    """A line of source code."""

    file: str
    line: int
    function: str


# How code uses a name: as an attribute, a global variable or a local variable. One name may stand for three
# different objects.
Scope = Literal["attribute", "global", "local", "any"]
_SCOPES: dict[Scope, tuple[str, ...]] = {
    "attribute": ("ATTR", "METHOD"),
    "global": ("GLOBAL", "NAME"),
    "local": ("FAST", "DEREF", "CLOSURE"),
    "any": ("",),
}

# Adds items; removes items; cuts to a length; assigns a new object; replaces one item by another.
Effect = Literal["grows", "shrinks", "trims", "resets", "overwrites"]


class Use(NamedTuple):
    """What one line does to a container."""

    effect: Effect
    site: Site


def uses_of(
    name: str, codes: Iterable[CodeType], scope: Scope = "any", *, sequence: bool = False
) -> list[Use]:
    """What these functions do to a container of this name; each line once for each effect.

    Storing at an index of a sequence replaces an item; storing under a key of a mapping adds one.
    """
    found: dict[tuple[str, int, str], Use] = {}
    for code in codes:
        for effect, line in _effects(code, name, scope, sequence):
            function = getattr(code, "co_qualname", code.co_name)
            use = Use(effect, Site(code.co_filename, line, function))
            found.setdefault((code.co_filename, line, effect), use)
    return list(found.values())


def rebound_at(name: str, codes: Iterable[CodeType], scope: Scope = "any") -> list[Use]:
    """Lines that bind a name to a value made from its old one, which makes an autograd graph longer."""
    found: dict[tuple[str, int], Use] = {}
    for code in codes:
        if not mentions(code, name):
            continue
        loaded: set[int] = set()
        for instruction, line in instructions_of(code):
            operation = instruction.opname
            if not _names(instruction, name, scope):
                continue
            if "LOAD_" in operation:
                loaded.add(line)
            if "STORE_" in operation and line in loaded:
                function = getattr(code, "co_qualname", code.co_name)
                site = Site(code.co_filename, line, function)
                found.setdefault((code.co_filename, line), Use("grows", site))
    return list(found.values())


def stores_of(name: str, codes: Iterable[CodeType]) -> list[Site]:
    """Lines that assign to an attribute of this name, or store under it as a constant key."""
    found: dict[tuple[str, int], Site] = {}
    for code in codes:
        if name not in code.co_names and name not in code.co_consts:
            continue
        before: object = None
        for instruction, line in instructions_of(code):
            key = before if instruction.opname == "STORE_SUBSCR" else None
            if (instruction.opname == "STORE_ATTR" and instruction.argval == name) or key == name:
                function = getattr(code, "co_qualname", code.co_name)
                found.setdefault((code.co_filename, line), Site(code.co_filename, line, function))
            if instruction.opname not in _SKIPPED:
                before = instruction.argval if instruction.opname == "LOAD_CONST" else None
    return list(found.values())


def callers_of(method: str, codes: Iterable[CodeType]) -> list[Site]:
    """Lines that load a method, a function or a class of this name."""
    found: dict[tuple[str, int], Site] = {}
    for code in codes:
        if method not in code.co_names:
            continue
        for instruction, line in instructions_of(code):
            if instruction.opname in _CALLED_BY and instruction.argval == method:
                function = getattr(code, "co_qualname", code.co_name)
                found.setdefault((code.co_filename, line), Site(code.co_filename, line, function))
    return list(found.values())


def only_return(code: CodeType) -> Site | None:
    """The line on which a function of the user's code returns a value; None if there are several or none."""
    lines = {
        line
        for instruction, line in instructions_of(code)
        if instruction.opname in ("RETURN_VALUE", "RETURN_CONST") and not _returns_none(code, line)
    }
    if len(lines) != 1 or not is_user_file(code.co_filename):
        return None
    return Site(code.co_filename, lines.pop(), getattr(code, "co_qualname", code.co_name))


def _returns_none(code: CodeType, line: int) -> bool:
    loads = [one for one, where in instructions_of(code) if where == line and one.opname.startswith("LOAD_")]
    return bool(loads) and loads[-1].opname == "LOAD_CONST" and loads[-1].argval is None


def function_at(site: Site, codes: Iterable[CodeType]) -> str:
    """Name of the innermost of these functions that contains a line; empty if none does."""
    inside = [
        code
        for code in codes
        if code.co_filename == site.file and any(line == site.line for _, _, line in code.co_lines())
    ]
    if not inside:
        return ""
    innermost = max(inside, key=lambda code: code.co_firstlineno)
    return getattr(innermost, "co_qualname", innermost.co_name)


def user_code() -> list[CodeType]:
    """The code of the user's functions, methods and running scripts, with nested functions."""
    found: dict[int, CodeType] = {}
    for name in user_modules():
        for value in list((module_namespace(name) or {}).values()):
            _collect(value, found, depth=0)
    for code in running_code():
        _nested(code, found)
    return [code for code in found.values() if is_user_file(code.co_filename)]


def code_of_class(cls: type) -> list[CodeType]:
    """The code of a class's methods, including inherited ones."""
    found: dict[int, CodeType] = {}
    for base in layout_of(cls).mro[:-1]:
        for value in list(namespace_of(base).values()):
            _collect(value, found, depth=1)
    return list(found.values())


def _collect(value: Any, found: dict[int, CodeType], depth: int) -> None:
    if len(found) > _MOST_CODE:
        return
    kind = type(value)
    if kind in (staticmethod, classmethod):
        _collect(value.__func__, found, depth)
    elif kind is property:
        for function in (value.fget, value.fset):
            _collect(function, found, depth)
    elif kind is FunctionType:
        _nested(value.__code__, found)
        for cell in value.__closure__ or ():
            try:
                inner = cell.cell_contents
            except ValueError:
                continue
            if depth < 3 and type(inner) is FunctionType:
                _collect(inner, found, depth + 1)
    elif layout_of(kind).kind == "class" and depth == 0:
        module = namespace_of(value).get("__module__")
        if type(module) is str and is_user_module(module):
            for part in list(namespace_of(value).values()):
                _collect(part, found, depth=1)
    elif (
        layout_of(kind).kind == "cache" and type(inner := getattr(value, "__wrapped__", None)) is FunctionType
    ):
        _collect(inner, found, depth + 1)


def _nested(code: CodeType, found: dict[int, CodeType]) -> None:
    if id(code) in found or len(found) > _MOST_CODE:
        return
    found[id(code)] = code
    for constant in code.co_consts:
        if type(constant) is CodeType:
            _nested(constant, found)


def _effects(
    code: CodeType, name: str, scope: Scope, sequence: bool, depth: int = 0
) -> Iterator[tuple[Effect, int]]:
    """What a code object does to `name`, by line; local variables that are bound to it are followed."""
    if not mentions(code, name):
        return
    listed = list(instructions_of(code))
    loads: dict[int, int] = {}
    for at, (instruction, line) in enumerate(listed):
        operation = instruction.opname
        if not _names(instruction, name, scope):
            continue
        if operation.startswith("LOAD_") and operation not in ("LOAD_METHOD", "LOAD_CONST"):
            loads[line] = at
            yield from _after_load(listed, at, line, code, sequence, depth)
        elif operation.startswith("STORE_"):
            grows = any(0 < at - load < _STATEMENT for where, load in loads.items() if where == line)
            if grows and any(one.opname in _SLICES for one, _ in listed[loads[line] : at]):
                yield "trims", line
            elif grows and _is_made_from(listed, loads[line], at):
                yield "grows", line
            elif _runs_again(code, name):
                yield "resets", line


def _after_load(
    listed: list[tuple[dis.Instruction, int]], at: int, line: int, code: CodeType, sequence: bool, depth: int
) -> Iterator[tuple[Effect, int]]:
    following = [entry for entry in listed[at + 1 : at + 1 + _NEAR] if entry[0].opname not in _SKIPPED]
    if not following:
        return
    first = following[0][0]
    before = [entry[0].argval for entry in listed[max(0, at - 6) : at]]
    if first.opname in ("LOAD_METHOD", "LOAD_ATTR") and first.argval in GROWS:
        yield "grows", line
    elif first.opname in ("LOAD_METHOD", "LOAD_ATTR") and first.argval in _SHRINKS:
        yield "shrinks", line
    elif any(type(value) is str and value in _PASSED_TO for value in before):
        yield "grows", line
    elif first.opname == "STORE_FAST" and depth == 0:
        for effect, where in _effects(code, first.argval, "local", sequence, depth + 1):
            if effect != "resets":
                yield effect, where
    else:
        for position, (instruction, where) in enumerate(following):
            operation = instruction.opname
            if operation == "STORE_SUBSCR":
                inner = any(
                    one.opname == "BINARY_SUBSCR" or one.argrepr == "[]" for one, _ in following[:position]
                )
                # If the line also reads the container, it changes an item and does not replace it.
                again = sum(one.argval == listed[at][0].argval for one, place in listed if place == line) > 1
                if not sequence:
                    yield "grows", where
                elif not inner and not again:
                    yield "overwrites", where
                return
            if operation in ("DELETE_SUBSCR", "STORE_SLICE"):
                cut = operation == "STORE_SLICE" or following[position - 1][0].opname == "BUILD_SLICE"
                yield "trims" if cut else "shrinks", where
                return
            if operation.startswith(("BINARY_SUBSCR", "BINARY_OP")) and position + 1 < len(following):
                then = following[position + 1][0]
                if then.opname in ("LOAD_METHOD", "LOAD_ATTR"):
                    if then.argval in GROWS:
                        yield "grows", where
                    elif then.argval in _SHRINKS:
                        yield "shrinks", where
                    return
            deletes = any(one.opname == "DELETE_SUBSCR" for one, place in following if place == line)
            if operation.startswith("CALL") and deletes:
                continue
            if operation.startswith(("CALL", "STORE_", "POP_", "RETURN", "LOAD_METHOD", "COMPARE")):
                return


def _is_made_from(listed: list[tuple[dis.Instruction, int]], load: int, store: int) -> bool:
    """Whether the stored value is the loaded one with more added: by an operator or a call such as `cat`."""
    between = [instruction for instruction, _ in listed[load + 1 : store]]
    joined = any(
        one.opname.startswith("BINARY_") and one.argrepr in ("+", "+=", "|", "|=") for one in between
    )
    joined = joined or any(one.opname in ("BINARY_ADD", "INPLACE_ADD", "INPLACE_OR") for one in between)
    joined = joined or any(one.opname in ("LIST_EXTEND", "DICT_UPDATE", "SET_UPDATE") for one in between)
    around = [instruction for instruction, _ in listed[max(0, load - 12) : store]]
    return joined or any(type(one.argval) is str and one.argval in GROWS for one in around)


def _runs_again(code: CodeType, name: str) -> bool:
    """Whether an assignment in this code may replace a filled container: not in code that sets it up."""
    function = code.co_flags & inspect.CO_OPTIMIZED
    own = name in code.co_varnames or name in code.co_cellvars
    return bool(function) and not own and code.co_name not in SETTING_UP


def _names(instruction: dis.Instruction, name: str, scope: Scope = "any") -> bool:
    value = instruction.argval
    if not any(part in instruction.opname for part in _SCOPES[scope]):
        return False
    return bool(value == name) if type(value) is str else type(value) is tuple and name in value
