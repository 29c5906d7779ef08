"""Finds the statements of a function of the program, in the source that its code was compiled from.

A function is parsed by itself, so that the program never waits for a long file. Source counts only if it
compiles to the function's own lines, names and numbers: the file may have changed since the import.
"""

from __future__ import annotations
import __future__

import ast
import io
import linecache
import os
import re
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import CodeType
from typing import Any

from heapwatch.runtime.own_files import read_bytes

_MOST_BYTES = 2_000_000
_MOST_CHARACTERS = 60_000  # some 1,500 lines: no other thread runs for 20 ms while they are parsed
_MOST_ENDS = 30  # lines after the last one with instructions, such as those of a long text
_NAME = "<heapwatch>"
_NO_WARNINGS: tuple[Any, ...] = ("ignore", None, Warning, re.compile(_NAME), 0)
PARTS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def source_of(code: CodeType) -> list[ast.stmt] | None:
    """The body of a function, class or module, with the line numbers of its file; None if it is unknown.

    Of a lambda expression it is the statement around it. A comprehension is a part of a function.
    """
    for lines in _files(code.co_filename) if code.co_name not in PARTS else ():
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            found = _found_in(lines, code)
            if found is not None:
                return found
    return None


def _found_in(lines: list[str], code: CodeType) -> list[ast.stmt] | None:
    used = {line for one in _nested(code) for _, _, line in one.co_lines() if line}
    named = code.co_name == "<lambda>" or not code.co_name.startswith("<")
    first = code.co_firstlineno if named else min(used, default=0)
    if not 0 < first <= max(used, default=0) <= len(lines):
        return None
    # What is around it gives it the same free variables.
    outside = f"def _({', '.join(code.co_freevars)}):\n" if code.co_freevars else "class _:\n"
    header = outside if lines[first - 1][:1].isspace() else ""
    before = first - 1 - bool(header)
    flags = code.co_flags & __future__.annotations.compiler_flag | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for end in range(max(used), min(max(used) + _MOST_ENDS, len(lines) + 1)):
        text = header + "".join(lines[first - 1 : end])
        if len(text) > _MOST_CHARACTERS:
            return None
        with suppress(SyntaxError), _without_warnings():  # it may end within a statement
            compiled = compile(text, _NAME, "exec", flags, dont_inherit=True)
            if not any(_is_same(one, code, before) for one in _nested(compiled)):
                return None
            body: Any = ast.parse("\n" * before + text, _NAME).body
            body = body[0].body if header else body
            return list(body if code.co_name.startswith("<") else body[0].body)
    return None


def _is_same(compiled: CodeType, code: CodeType, before: int) -> bool:
    """Whether two code objects have the same lines, numbers and names in the same order.

    Their instructions may differ: they depend on what the whole file imports.
    """
    (names, facts), (others, wanted) = _facts(compiled, before), _facts(code, 0)
    # The name of the class is a part of private names.
    same = [
        mine == its or (mine[:2] == "__" and its.endswith(mine))
        for mine, its in zip(names, others, strict=False)
    ]
    return facts == wanted and all(same)


def _facts(code: CodeType, before: int) -> tuple[tuple[str, ...], tuple[object, ...]]:
    names = code.co_names + code.co_varnames
    numbers = [value for value in code.co_consts if type(value) in (int, float)]
    if "__firstlineno__" in names:
        numbers = []  # a class of Python 3.13, of which one is its first line
    lines = {before + line for _, _, line in code.co_lines() if line}
    return names, (len(names), numbers, lines, code.co_name.startswith("<") or code.co_name)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for value in code.co_consts:
        if type(value) is CodeType:
            yield from _nested(value)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Nothing that the compiler remarks on the program's source is shown; remarks on anything else are."""
    filters: Any = warnings.filters
    filters.insert(0, _NO_WARNINGS)
    try:
        yield
    finally:
        with suppress(ValueError):
            filters.remove(_NO_WARNINGS)


def _files(file: str) -> Iterator[list[str]]:
    with suppress(OSError, SyntaxError, ValueError, LookupError):
        status = os.stat(file)
        yield _lines_of(file, status.st_mtime_ns, status.st_size)
    entry = linecache.cache.get(file)
    if type(entry) is tuple and len(entry) == 4:  # what was typed, as in a cell of a notebook
        yield entry[2]


@lru_cache(maxsize=4)
def _lines_of(file: str, changed: int, size: int) -> list[str]:
    content = io.BytesIO(read_bytes(file, most=_MOST_BYTES, named=True, foreign=True))
    encoding, _ = tokenize.detect_encoding(content.readline)
    content.seek(0)
    return io.TextIOWrapper(content, encoding).readlines()
