"""Finds files that the program writes to /dev/shm by name, such as with `numpy.save`.

The kernel does not record who made a file. So a file counts as the program's if its path begins with one that
stands in the user's code, its command line or its environment.
"""

from __future__ import annotations

import dis
import os
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from types import CodeType

from heapwatch.explain.sites import Site, site_of, user_code
from heapwatch.measure.introspection.roots import module_namespace, user_modules
from heapwatch.measure.process.procfs import SHARED_FILES

_BELOW = f"{SHARED_FILES}/"
_NAME = re.compile(r"/?([A-Za-z][\w.-]{2,39})")  # a constant that may be the beginning of a file's name
_IN_TEXT = re.compile(rf"(?:^|[=\s:]){_BELOW}([^\s:{{}}]+)")
_TEMPORARY = ("mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory")
_MOST_BEGINNINGS = 500
_LONGEST = 4096  # characters of a text


def beginnings() -> dict[str, Site | None]:
    """How the names of the program's files in /dev/shm may begin, with the line that says so if known."""
    settings = _settings()
    found: dict[str, Site | None] = {
        name: None for text in settings for name in _IN_TEXT.findall(text) if name.strip("/")
    }
    codes = user_code()
    constants = [(text, code) for code in codes for text in code.co_consts if type(text) is str]
    found |= {
        text.removeprefix(_BELOW): _site_of(code, text)
        for text, code in constants
        if text.startswith(_BELOW) and text.strip("/") != _BELOW.strip("/")
    }
    if any(text.rstrip("/") == SHARED_FILES for text in chain(settings, (text for text, _ in constants))):
        # The folder alone: the names of files are built of other constants.
        for text, code in constants:
            if match := _NAME.fullmatch(text):
                found.setdefault(match[1], _site_of(code, text))
        if any(name in _TEMPORARY for code in codes for name in code.co_names):
            found.setdefault("tmp", None)
    return dict(islice(found.items(), _MOST_BEGINNINGS))


def files_beginning_with(names: Iterable[str], most: int) -> Iterator[str]:
    """Names of files below /dev/shm that begin like one of these, at most so many."""
    wanted = tuple(names)
    return islice((name for name in all_files() if name.startswith(wanted)), most)


def all_files() -> Iterator[str]:
    """Names of the files below /dev/shm, with their folders."""
    for folder, _, files in os.walk(SHARED_FILES):
        within = f"{folder}/".removeprefix(_BELOW)
        yield from (within + file for file in files)


def _settings() -> list[str]:
    """The command line, the environment, and the texts of the user's modules, where they name the folder."""
    spaces = (module_namespace(name) or {} for name in user_modules())
    values = chain(sys.argv, os.environ.values(), *(list(space.values()) for space in spaces))
    return [text for text in values if type(text) is str and SHARED_FILES in text[:_LONGEST]]


def _site_of(code: CodeType, constant: str) -> Site:
    """The line of a function that uses a constant."""
    offsets = (one.offset for one in dis.get_instructions(code) if one.argval is constant)
    offset = next(offsets, 0)
    return site_of(code, next((line for first, end, line in code.co_lines() if first <= offset < end), None))
