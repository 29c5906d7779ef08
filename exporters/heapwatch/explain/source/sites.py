"""Finds the lines that fill and empty a container, in the source of the program."""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType
from typing import Literal, NamedTuple

from heapwatch.explain.source.statements import Deed, Scope, statements_of
from heapwatch.measure.introspection.roots import CONTEXT_SUFFIX, is_user_file


class Site(NamedTuple):
    """A line of source code."""

    file: str
    line: int
    function: str


# Adds items; removes items; cuts to a length; assigns a new object; replaces one item by another.
Effect = Literal["grows", "shrinks", "trims", "resets", "overwrites"]
# A key of a mapping is one more item; an index of a sequence is that of an item that it has.
_SEQUENCE: dict[Deed, Effect] = {
    "grows": "grows", "shrinks": "shrinks", "trims": "trims", "resets": "resets", "stores": "overwrites"
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
    return _uses(name, codes, scope, _SEQUENCE if sequence else _MAPPING)


def rebound_at(name: str, codes: Iterable[CodeType], scope: Scope = "any") -> list[Use]:
    """Lines that bind a name to a value made from its old one, which makes an autograd graph longer."""
    return _uses(name, codes, scope, {"rebinds": "grows"})


def stores_of(name: str, codes: Iterable[CodeType]) -> list[Site]:
    """Lines that assign to an attribute of this name, or store under it as a constant key."""
    return [use.site for use in _uses(name, codes, "any", {"assigned": "grows"})]


def callers_of(method: str, codes: Iterable[CodeType]) -> list[Site]:
    """Lines that load a method, a function or a class of this name."""
    return [use.site for use in _uses(method, codes, "any", {"loaded": "grows"})]


def _uses(name: str, codes: Iterable[CodeType], scope: Scope, effects: dict[Deed, Effect]) -> list[Use]:
    found: dict[tuple[str, int, str], Use] = {}
    for code in codes:
        for used, where, deed, line in statements_of(code).acts if mentions(code, name) else ():
            if used == name and scope in (where, "any") and deed in effects:
                use = Use(effects[deed], _site(code, line))
                found.setdefault((code.co_filename, line, use.effect), use)
    return list(found.values())


def mentions(code: CodeType, name: str) -> bool:
    """Whether a function uses a name of a variable, an attribute or a key, also in its comprehensions."""
    name = name.removesuffix(CONTEXT_SUFFIX)
    parts = [one for one in code.co_consts if type(one) is CodeType and one.co_name.startswith("<")]
    names = (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars, *code.co_consts)
    return any(type(one) is str and one == name for one in names) or any(mentions(one, name) for one in parts)


def only_return(code: CodeType) -> Site | None:
    """The line on which a function of the user's code returns a value; None if there are several or none."""
    returns = statements_of(code).returns if is_user_file(code.co_filename) else []
    return _site(code, returns[0][0]) if len(returns) == 1 else None


def _site(code: CodeType, line: int) -> Site:
    return Site(code.co_filename, line, getattr(code, "co_qualname", code.co_name))


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
