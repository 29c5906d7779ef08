"""Which names of a program may be shown: those that stand in its source code.

The keys of a dictionary, attributes and classes get names at run time, too, made of what the program works
on: an address, a password in a URL, a person. A name is shown only where the user's source has it as a
variable, an attribute or a text of its own, not in a comment or in a longer text; or where it is such a name,
or the beginning of an f-string, and a small number. Attributes that a library's code names are shown on the
objects of that library.
"""

from __future__ import annotations

import linecache
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from types import CodeType, FunctionType, MethodDescriptorType
from typing import Any

from heapwatch.measure.introspection.attributes import code_in, nested_code
from heapwatch.measure.introspection.exclusive_reads import callers, innermost, thread_ids
from heapwatch.measure.introspection.layout import Layout, flags_of, layout_of, namespace_of
from heapwatch.measure.introspection.roots import is_user_file, module_label, module_namespace, user_modules

_ANY_ITEM = "[*]"
_ANY_ATTRIBUTE = ".*"
_LONGEST = 60
_MOST_DIGITS = 3
_MOST_BYTES = 2_000_000  # of one source file
_MOST_WORDS = 200_000
_MOST_FRAMES = 60
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made at run time, by a class statement, `type()` or an extension
_PROMPTS = ("<stdin", "<python-input", "<ipython-input", "<string")
_TOKENS = re.compile(
    r"""
    \#[^\n]* | \"{3}[\s\S]*?\"{3} | '{3}[\s\S]*?'{3}  # what is left out: comments and long texts
    | (["'])(\w{1,60})\1                             # a text that is one word
    | "(?:(\w{1,60})\{)?(?:\\.|[^"\\\n])*"           # a longer text, or an f-string with its first word
    | '(?:(\w{1,60})\{)?(?:\\.|[^'\\\n])*'
    | ([^\W\d]\w*)
    """,
    re.VERBOSE,
)


def is_written(name: object) -> bool:
    """Whether a name is an identifier of at most 60 characters that stands in the user's source."""
    if type(name) is not str or len(name) > _LONGEST:
        return False
    stem = name.rstrip("0123456789")
    return _SOURCE.has(name) or (0 < len(name) - len(stem) <= _MOST_DIGITS and _SOURCE.has(stem))


def key_label(key: object) -> str:
    """How the key of a dictionary is shown in a path."""
    return f'["{key}"]' if is_written(key) else _ANY_ITEM


def attribute_label(name: str, layout: Layout | None = None) -> str:
    """How an attribute is shown in a path; of an object with this layout, where it is given."""
    return f".{name}" if is_attribute_in_code(name, layout) else _ANY_ATTRIBUTE


def is_attribute_in_code(name: str, layout: Layout | None = None) -> bool:
    """Whether the user's source has a name, or the code of the class with this layout has it."""
    return (layout is not None and any(name in words for words in _words_in_code(layout))) or is_written(name)


def code_label(name: str) -> str:
    """How a variable of a function is shown in a path: source code has nothing but identifiers."""
    return f".{name}" if name.isidentifier() and len(name) <= _LONGEST else _ANY_ATTRIBUTE


def type_name(layout: Layout) -> str:
    """The name of a class, or of its nearest base whose name stands in source code."""
    return _shown(layout)[0]


def type_of(obj: object) -> str:
    """The `type_name` of an object's class."""
    return type_name(layout_of(type(obj)))


def qualified_type_name(layout: Layout) -> str:
    """The same with its module in front, unless that is `builtins` or `__main__`."""
    name, module = _shown(layout)
    return name if module in ("builtins", "__main__") else f"{module_label(module)}.{name}"


def _shown(layout: Layout) -> tuple[str, str]:
    if layout.shown is None:
        named = next((base for base in layout.mro if _stands_in_code(base)), object)
        found = layout_of(named)
        layout.shown = found.name, found.module
    return layout.shown


def _stands_in_code(cls: type) -> bool:
    """Whether the name of a class is of a class statement, or of compiled code."""
    if not flags_of(cls) & _HEAP_TYPE:
        return True
    layout = layout_of(cls)
    namespace = module_namespace(layout.module)
    if namespace is None:
        return False
    file = namespace.get("__file__")
    is_library = layout.module != "__main__" and not (type(file) is str and is_user_file(file))
    if (is_library and namespace.get(layout.name) is cls) or is_written(layout.name):
        return True
    statement = f"{_qualified_name(cls)}."
    return any(
        (type(value) is FunctionType and value.__qualname__.startswith(statement))
        or (type(value) is MethodDescriptorType and value.__objclass__ is cls)
        for value in list(namespace_of(cls).values())
    )


_qualified_name = type.__dict__["__qualname__"].__get__


def _words_in_code(layout: Layout) -> tuple[frozenset[str], ...]:
    """The words in the code of a class and of its bases, one set for each."""
    if layout.written is None:
        layout.written = tuple(map(_words_in, layout.mro))
    return layout.written


def _words_in(cls: type) -> frozenset[str]:
    """The words in the code of a class's own methods, or the names of its attributes if it is compiled.

    A framework's base class has thousands: they are read once, and kept once for all its subclasses.
    """
    layout = layout_of(cls)
    if layout.words is None:
        found: set[object] = set()
        if flags_of(cls) & _HEAP_TYPE:
            for code in code_in(list(namespace_of(cls).values())):
                found.update(_words_of(code))
        else:
            found.update(namespace_of(cls))
        layout.words = frozenset(name for name in found if type(name) is str and len(name) <= _LONGEST)
    return layout.words


class _Source:
    """The words of the user's source. A file is read once, when a name is not found among those known."""

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._read: set[str] = set()
        self._state: tuple[int, ...] = ()

    def has(self, word: str) -> bool:
        return word in self._words or (self._read_new() and word in self._words)

    def _read_new(self) -> bool:
        """Read what was loaded since the last call; whether there was any."""
        main = module_namespace("__main__") or {}
        state = (len(sys.modules), len(linecache.cache), len(main))
        if state == self._state:
            return False
        self._state = state
        for name in user_modules():
            self._read_module(module_namespace(name) or {}, is_main=name == "__main__")
        # What was typed at a prompt or in a notebook is in no file.
        for file, entry in list(linecache.cache.items()):
            typed = file.startswith(_PROMPTS) or is_user_file(file)
            if typed and file not in self._read and len(entry) == 4 and entry[1] is None:
                self._add(file, "".join(entry[2]))
        return True

    def _read_module(self, namespace: dict[str, Any], *, is_main: bool) -> None:
        file = namespace.get("__file__")
        if type(file) is str:
            if file in self._read:
                return
            text = _text_of(file)
            if text is not None:
                self._add(file, text)
                return
            self._read.add(file)
        codes = [*_code_of_module(namespace), *(_running() if is_main else ())]
        self._keep(word for code in codes for word in _words_of(code))

    def _add(self, file: str, text: str) -> None:
        self._read.add(file)
        self._keep(match[match.lastindex] for match in _TOKENS.finditer(text) if match.lastindex)

    def _keep(self, words: Iterable[str]) -> None:
        for word in words:
            if len(self._words) >= _MOST_WORDS:
                return
            if len(word) <= _LONGEST and word.isidentifier():
                self._words.add(word)


_SOURCE = _Source()


def _text_of(file: str) -> str | None:
    """The source text of a file; None where there is none that can be read."""
    with suppress(OSError, ValueError):
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as opened:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                text = opened.read(_MOST_BYTES)
                return None if b"\0" in text else text.decode("utf-8", "replace")
    return None


def _running() -> Iterator[CodeType]:
    """The code that runs and is in no file, such as that of `python -c`."""
    for thread in thread_ids():
        for frame in islice(callers(innermost(thread)), _MOST_FRAMES):
            if frame.f_code.co_filename.startswith(_PROMPTS):
                yield from nested_code(frame.f_code)


def _words_of(code: CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars, code.co_name)
    constants = list(code.co_consts)
    while constants:
        constant = constants.pop()
        if type(constant) is str:
            yield constant
        elif type(constant) in (tuple, frozenset):
            constants += constant


def _code_of_module(namespace: dict[str, Any]) -> Iterator[CodeType]:
    """The code of its functions, and of the methods of its classes."""
    values = list(namespace.values())
    yield from code_in(values)
    for value in values:
        if layout_of(type(value)).kind == "class":
            yield from code_in(list(namespace_of(value).values()))
