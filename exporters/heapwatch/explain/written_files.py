"""Finds files that the program writes to /dev/shm by name, such as with `numpy.save`.

The kernel does not record who made a file. So a file counts as the program's if the user's code,
the command line or the environment has the beginning of its path.
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
_MOST_PREFIXES = 500
_LONGEST = 4096  # characters of a text


def prefixes() -> dict[str, Site | None]:
    """Prefixes of the names of the program's files in /dev/shm, each with its line of code if known."""
    settings = _texts_with_folder()
    found: dict[str, Site | None] = {
        name: None for text in settings for name in _IN_TEXT.findall(text) if name.strip("/")
    }
    codes = user_code()
    constants = [(text, code) for code in codes for text in code.co_consts if type(text) is str]
    found |= {
        text.removeprefix(_BELOW): _site_of(code, text)
        for text, code in constants
        if text.startswith(_BELOW) and text.rstrip("/") != SHARED_FILES
    }
    if any(text.rstrip("/") == SHARED_FILES for text in chain(settings, (text for text, _ in constants))):
        # The code has only the folder, and joins it with other constants.
        for text, code in constants:
            if match := _NAME.fullmatch(text):
                found.setdefault(match[1], _site_of(code, text))
        if any(name in _TEMPORARY for code in codes for name in code.co_names):
            found.setdefault("tmp", None)
    return dict(islice(found.items(), _MOST_PREFIXES))


def files_with_prefix(names: Iterable[str], most: int) -> Iterator[str]:
    """At most `most` names of files below /dev/shm that have one of these prefixes."""
    wanted = tuple(names)
    return islice((name for name in all_files() if name.startswith(wanted)), most)


def all_files() -> Iterator[str]:
    """Paths of the files below /dev/shm, relative to it."""
    for folder, _, files in os.walk(SHARED_FILES):
        within = f"{folder}/".removeprefix(_BELOW)
        yield from (within + file for file in files)


def _texts_with_folder() -> list[str]:
    """Arguments, environment variables and strings of the user's modules that contain the folder."""
    spaces = (module_namespace(name) or {} for name in user_modules())
    values = chain(sys.argv, os.environ.values(), *(list(space.values()) for space in spaces))
    return [text for text in values if type(text) is str and SHARED_FILES in text[:_LONGEST]]


def _site_of(code: CodeType, constant: str) -> Site:
    """The line on which a function uses a constant."""
    offsets = (one.offset for one in dis.get_instructions(code) if one.argval is constant)
    offset = next(offsets, 0)
    return site_of(code, next((line for first, end, line in code.co_lines() if first <= offset < end), None))
