"""The user's code, and its lines that fill and empty a container."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any, Literal, NamedTuple

from heapwatch.explain.statements import Deed, Scope, is_read, statements_of
from heapwatch.measure.introspection.attributes import nested_code
from heapwatch.measure.introspection.layout import CACHE_TYPE, layout_of, namespace_of
from heapwatch.measure.introspection.roots import (
    is_user_file,
    is_user_module,
    module_namespace,
    running_code,
    user_modules,
)
from heapwatch.measure.process.own_time import own_time

_MOST_CODE = 4000


def user_code() -> list[CodeType]:
    """The code of the user's functions, methods and running scripts, with nested functions."""
    codes: dict[int, CodeType] = {}
    for name in user_modules():
        for value in list((module_namespace(name) or {}).values()):
            _collect(value, codes, depth=0)
    for code in running_code():
        codes |= {id(one): one for one in nested_code(code)}
    return [code for code in codes.values() if is_user_file(code.co_filename)]


def is_user_class(cls: type) -> bool:
    """Whether a class was made in a module of the user's."""
    module = namespace_of(cls).get("__module__")
    return type(module) is str and is_user_module(module)


def code_of_class(cls: type) -> list[CodeType]:
    """The code of a class's methods, including inherited ones."""
    codes: dict[int, CodeType] = {}
    for base in layout_of(cls).mro[:-1]:
        for value in list(namespace_of(base).values()):
            _collect(value, codes, depth=1)
    return list(codes.values())


def _collect(value: Any, codes: dict[int, CodeType], depth: int) -> None:
    if len(codes) > _MOST_CODE:
        return
    kind = type(value)
    if kind is staticmethod or kind is classmethod:
        _collect(value.__func__, codes, depth)
    elif kind is property:
        _collect(value.fget, codes, depth)
        _collect(value.fset, codes, depth)
    elif kind is FunctionType:
        codes |= {id(one): one for one in nested_code(value.__code__)}
        for inner in gc.get_referents(*value.__closure__ or ()):
            if depth < 3 and type(inner) is FunctionType:
                _collect(inner, codes, depth + 1)
    elif layout_of(kind).kind == "class" and depth == 0 and is_user_class(value):
        for part in list(namespace_of(value).values()):
            _collect(part, codes, depth=1)
    elif kind is CACHE_TYPE:
        inner = getattr(value, "__wrapped__", None)
        if type(inner) is FunctionType:
            _collect(inner, codes, depth + 1)


class Site(NamedTuple):
    """A line of source code."""

    file: str
    line: int
    function: str


# Adds items; removes items; removes all or assigns another object; cuts to a length; replaces one item.
Effect = Literal["grows", "shrinks", "empties", "trims", "overwrites"]
# A key of a mapping is one more item; an index of a sequence is that of an item that it has.
_SEQUENCE: dict[Deed, Effect] = {
    "grows": "grows", "shrinks": "shrinks", "empties": "empties", "resets": "empties", "renews": "empties",
    "trims": "trims", "stores": "overwrites",
}  # fmt: skip
_MAPPING: dict[Deed, Effect] = {**_SEQUENCE, "stores": "grows", "changes": "grows"}


class Use(NamedTuple):
    """What one line does to a container."""

    effect: Effect
    site: Site


def uses_of(
    name: str, codes: Iterable[CodeType], scope: Scope = "any", *, sequence: bool = False
) -> list[Use]:
    """What these functions do to a container of this name; each line once for each effect."""
    effects = _SEQUENCE if sequence else _MAPPING
    uses: dict[tuple[str, int, str], Use] = {}
    for deed, site in _deeds(name, codes, scope):
        if deed in effects:
            use = Use(effects[deed], site)
            uses.setdefault((site.file, site.line, use.effect), use)
    return list(uses.values())


def lines_of(deed: Deed, name: str, codes: Iterable[CodeType], scope: Scope = "any") -> list[Site]:
    """The lines on which these functions do `deed` to a name; of each line the first site."""
    sites: dict[tuple[str, int], Site] = {}
    for done, site in _deeds(name, codes, scope):
        if done == deed:
            sites.setdefault((site.file, site.line), site)
    return list(sites.values())


def _deeds(name: str, codes: Iterable[CodeType], scope: Scope) -> Iterator[tuple[Deed, Site]]:
    for code in codes:
        for used, where, deed, line in statements_of(code).acts if mentions(code, name) else ():
            if used == name and scope in (where, "any"):
                yield deed, site_of(code, line)


def mentions(code: CodeType, name: str) -> bool:
    """Whether a function uses a name of a variable, an attribute or a key, also in its comprehensions."""
    parts = [one for one in code.co_consts if type(one) is CodeType and one.co_name.startswith("<")]
    names = (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars, *code.co_consts)
    return any(type(one) is str and one == name for one in names) or any(mentions(one, name) for one in parts)


def are_read(name: str, codes: Iterable[CodeType], until: float) -> bool:
    """Whether the statements of all functions that mention a name are known.

    They are read from the source until this CPU time of the thread; a later call goes on.
    """
    for code in codes:
        if mentions(code, name) and not is_read(code):
            if own_time() > until:
                return False
            statements_of(code)
    return True


def site_of(code: CodeType, line: int | None = None) -> Site:
    """A line of a function, by default its first one."""
    line = code.co_firstlineno if line is None else line
    return Site(code.co_filename, line, getattr(code, "co_qualname", code.co_name))


def user_line(frame: FrameType | None) -> Site | None:
    """The line of the nearest frame of the user's code, this one or one above it; None without one."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else site_of(frame.f_code, frame.f_lineno)


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
