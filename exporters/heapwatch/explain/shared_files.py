"""Follows segments and other files in /dev/shm, whose memory stays even if no process maps them."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from heapwatch.explain.places import KnownContainer
from heapwatch.explain.sites import Site, user_line
from heapwatch.explain.written_files import Constant, all_files, line_with, prefixes
from heapwatch.measure.process.procfs import SHARED_FILES

_MAKERS, _TRACKER = "multiprocessing.shared_memory", "multiprocessing.resource_tracker"
SEGMENTS, FILES = "shared memory segments", "files in memory"
_MOST_FILES = 50_000
_CLOCK_SECONDS = 0.02  # by which the kernel's times of files may be late
_READ_AGAIN = 200  # of the newest files, which may still grow
_PATTERN = re.compile(r"[A-Za-z]+(?:[^A-Za-z0-9]|(?=\d))")


class SharedFiles:
    """The segments that this program makes or maps, and the files that it writes, except files from before.

    The kernel does not record who made a segment. `multiprocessing` registers each with its resource tracker,
    so this class wraps that call.

    Attributes:
        bytes: their total size.
        known: number and bytes of the files by pattern, such as `/dev/shm/psm_*`.
        sites: the lines that made them, by pattern.

    """

    def __init__(self) -> None:
        self.bytes = 0.0
        self.known: dict[str, KnownContainer] = {}
        self.sites: dict[str, set[Site]] = {}
        self._prefixes: dict[str, Constant | None] = {}
        self._sizes: dict[str, dict[str, int | None]] = {}  # by pattern and name; None if it is not read yet
        self._register: Any = None
        self._began = time.time() - _CLOCK_SECONDS

    def find_prefixes(self) -> None:
        """Search the program's code again for prefixes of the names of its files."""
        self._prefixes = prefixes()

    def add(self, files: Iterable[str], site: Site | None = None, what: str = SEGMENTS) -> None:
        """Add files by name that a process of the program has made or maps."""
        for name in files:
            folder, _, file = name.rpartition("/")
            match = _PATTERN.match(file)
            within = re.sub(r"\d+", "*", f"{SHARED_FILES}/{folder}".rstrip("/"))
            path = f"{within}/{match[0]}*" if match else f"{within}/{file}"
            self.known.setdefault(path, KnownContainer(path, "list", what))
            sizes = self._sizes.setdefault(path, {})
            if len(sizes) < _MOST_FILES:
                sizes.setdefault(name)
                self.sites.setdefault(path, set()).update([site] if site else [])

    def read(self, now: float) -> None:
        """Read the sizes of files that were never read, and of the newest ones again."""
        if _MAKERS in sys.modules and self._register is None:
            self._wrap(sys.modules[_TRACKER])
        existing = set(all_files()) if self._sizes or self._prefixes else set()
        for name in existing.difference(*self._sizes.values()):
            if name.startswith(tuple(self._prefixes)):
                self.add([name], self._site_of(name), FILES)
        for path, sizes in list(self._sizes.items()):
            for name in sizes.keys() - existing:
                del sizes[name]
            newest = list(sizes)[-_READ_AGAIN:]
            for name in {*newest, *(name for name, size in list(sizes.items()) if size is None)}:
                sizes[name] = self._size(name)
            container = self.known[path]
            new = list(filter(None, sizes.values()))
            container.items.add(now, len(new))
            container.held.add(now, sum(new))
            container.weighed_items = len(new)
        self.bytes = sum(container.held.last or 0.0 for container in self.known.values())

    def close(self) -> None:
        """Restore the tracker's function; also in a forked child, which would note its segments for ever."""
        tracker = sys.modules.get(_TRACKER)
        if tracker is not None and getattr(tracker.register, "by", None) is self:
            tracker.register = self._register  # type: ignore[attr-defined]

    def _wrap(self, tracker: Any) -> None:
        original = self._register = tracker.register

        def register(name: str, rtype: str) -> None:
            original(name, rtype)
            with suppress(Exception):  # it would be raised in the program
                self.add([name.strip("/")] if rtype == "shared_memory" else [], user_line(sys._getframe(1)))

        register.by = self  # type: ignore[attr-defined]
        tracker.register = register

    def _site_of(self, name: str) -> Site | None:
        """The line of the longest prefix of a name."""
        constant = self._prefixes[max(filter(name.startswith, self._prefixes), key=len)]
        return None if constant is None else line_with(constant)

    def _size(self, name: str) -> int:
        with suppress(OSError):
            status = os.stat(f"{SHARED_FILES}/{name}")
            is_own = status.st_uid == os.geteuid() and status.st_ctime >= self._began
            return 512 * status.st_blocks if is_own else 0
        return 0
