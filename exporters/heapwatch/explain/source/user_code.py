"""The code objects of the user's functions."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from heapwatch.measure.introspection.layout import layout_of, namespace_of
from heapwatch.measure.introspection.roots import (
    is_user_file,
    is_user_module,
    module_namespace,
    running_code,
    user_modules,
)

_MOST_CODE = 4000


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
