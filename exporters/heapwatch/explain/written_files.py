"""Finds files that the program writes to /dev/shm by name, such as with `numpy.save`.

The kernel does not record who made a file. So a file counts as the program's if the user's code,
the command line or the environment has the beginning of its path.
"""

from __future__ import annotations

import dis
import os
import re
import sys
from collections.abc import Iterator
from itertools import chain, islice
from types import CodeType
from typing import NamedTuple

from heapwatch.explain.sites import Site, site_of, user_code
from heapwatch.measure.introspection.roots import module_namespace, user_modules
from heapwatch.measure.process.procfs import SHARED_FILES

_BELOW = f"{SHARED_FILES}/"
# A constant with which a path goes on, or a name that a number ends: `/rollouts`, `chunk_`.
_NAME = re.compile(r"/([A-Za-z][\w.-]{2,39})|([A-Za-z][\w.-]{1,38}[._-])")
_FOLLOWED_OTHERWISE = ("psm_", "torch_", "sem.")  # of multiprocessing and torch, in any program
_IN_TEXT = re.compile(rf"(?:^|[=\s:]){_BELOW}([^\s:{{}}]+)")
_TEMPORARY = ("mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory")
_MOST_PREFIXES = 500
_LONGEST = 4096  # characters of a text


class Constant(NamedTuple):
    """A text in the code of a function."""

    code: CodeType
    text: str


def prefixes() -> dict[str, Constant | None]:
    """Prefixes of the names of the program's files in /dev/shm, each with its place in the code if known."""
    settings = _texts_with_folder()
    found: dict[str, Constant | None] = {
        name: None for text in settings for name in _IN_TEXT.findall(text) if name.strip("/")
    }
    codes = user_code()
    constants = [Constant(code, text) for code in codes for text in code.co_consts if type(text) is str]
    found |= {
        one.text.removeprefix(_BELOW): one
        for one in constants
        if one.text.startswith(_BELOW) and one.text.rstrip("/") != SHARED_FILES
    }
    if any(text.rstrip("/") == SHARED_FILES for text in chain(settings, (one.text for one in constants))):
        # The code has only the folder, and joins it with other constants.
        for one in constants:
            match = _NAME.fullmatch(one.text)
            if match and not (name := match[1] or match[2]).startswith(_FOLLOWED_OTHERWISE):
                found.setdefault(name, one)
        if any(name in _TEMPORARY for code in codes for name in code.co_names):
            found.setdefault("tmp", None)
    return dict(islice(found.items(), _MOST_PREFIXES))


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


def line_with(constant: Constant) -> Site:
    """The line on which a function uses a constant."""
    code = constant.code
    offsets = (one.offset for one in dis.get_instructions(code) if one.argval is constant.text)
    offset = next(offsets, 0)
    return site_of(code, next((line for first, end, line in code.co_lines() if first <= offset < end), None))
