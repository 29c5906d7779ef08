"""What `heapwatch top` shows of a process: its verdict, its memory by part, and its paths."""

from __future__ import annotations

import math
import pathlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil

from heapwatch.cli.followed import Ended, Followed
from heapwatch.cli.sources import read_all
from heapwatch.cli.visits import begin_explaining
from heapwatch.entering.agent import EXPLANATION
from heapwatch.entering.entered_process import CannotEnter, EnteredProcess, process_of
from heapwatch.errors import Unreachable
from heapwatch.explain.findings import Explanation, Finding, described, headline, place_of
from heapwatch.explain.received import MOST_BYTES, explanation_of
from heapwatch.http.client import get_json, understood
from heapwatch.measure.process.memory import UniqueMemory, memory_limit
from heapwatch.measure.process.other_process import name_of
from heapwatch.measure.process.process_tree import ProcessTree
from heapwatch.text.numbers import duration_range, size, size_change
from heapwatch.text.tables import aligned
from heapwatch.text.terminal import plain

COLUMNS = ("PATH", "TYPE", "ITEMS", "BYTES", "A MINUTE", "LINE")
_MOST_PRINTED = 20
_GROWING = "in objects that grow"
_SPLIT, _OVERLAPPING = ("in use", "freed but kept"), ("shared", _GROWING)  # parts of resident memory
_OBJECTS = ("container", "type", "buffer")
_FIRST_SECONDS, _POLL_SECONDS = 10.0, 0.1  # until a process that was entered tells something


@dataclass(frozen=True)
class Path:
    """A path in a trainer, or a declared object; unknown values are None.

    `line` is the line that fills it, `details` are sentences about it.
    """

    trainer: str
    path: str
    type: str
    items: float | None = None
    bytes: float | None = None
    bytes_per_minute: float | None = None
    line: str | None = None
    remedy: str | None = None
    is_leak: bool = False
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """The state of a process at one time, named by its address or `pid 123`.

    `time_left` is until memory ends, in words. `memory` are bytes by part; `resident` is the process's own,
    `limit` what it may use with its workers. `paths` come with most growth first. `problem` says why nothing
    is known.
    """

    trainer: str
    address: str
    verdict: str | None = None
    headline: str = ""
    time_left: str = ""
    memory: Mapping[str, float] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()
    problem: str = ""


class Served:
    """Trainers that serve `/explain` and `/performance_status`."""

    end = None

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls

    def read(self) -> list[Snapshot]:
        """Read all of them in parallel; one that does not answer has a `problem`."""
        return read_all(self._urls, snapshot_of)


class Entered:
    """A process that does not serve, entered until the exit. Enter and leave it in the same thread.

    Attributes:
        end: its end, if it has ended before it was left or right after that.

    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        process = process_of(pid)
        self._name = name_of(process)
        self._tree = ProcessTree(pid)
        self._unique = UniqueMemory()
        self._entered = EnteredProcess(pid)
        self._followed = Followed(process, self._name)
        self.end: Ended | None = None

    def __enter__(self) -> Entered:
        try:
            begin_explaining(self._entered, self._name)
        except BaseException as error:
            self.__exit__(type(error))
            if self.end is not None:
                raise self.end from None
            raise
        until = time.monotonic() + _FIRST_SECONDS
        while self._entered.latest(EXPLANATION) is None and time.monotonic() < until:
            if self._followed.ended_within(_POLL_SECONDS) is not None:
                break
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        self._entered.__exit__(None, None, None)
        with self._followed:
            if kind is None or issubclass(kind, CannotEnter):
                self.end = self._followed.end("while it was entered, or right after that")

    def read(self) -> list[Snapshot]:
        """The last explanation of the process, and its memory as the system reports it."""
        address = f"pid {self._pid}"
        if (ended := self._followed.ended_within(0)) is not None:
            return [Snapshot(self._name, address, problem=f"it {ended.said()}")]
        try:
            document = self._entered.latest(EXPLANATION)
            found = None if document is None else explanation_of(document)
        except (CannotEnter, ValueError) as error:
            return [Snapshot(self._name, address, problem=str(error))]
        told = {} if document is None else document.get("memory", {})
        return [_explained(self._name, address, found, self._memory(told), ())]

    def _memory(self, told: Mapping[str, float]) -> dict[str, float]:
        """Memory as the system and the process tell it; empty for a process that has ended."""
        try:
            resident = float(self._tree.trainer.memory_info().rss)
        except psutil.Error:
            return {}
        parts: dict[str, float | None] = {
            **_of_resident(resident, told.get("used"), told.get("retained")),
            "on GPUs": told.get("gpu"),
            "in workers": float(sum(self._unique.read(self._tree.workers()).values())) or None,
            "limit": float(memory_limit(pathlib.Path(f"/proc/{self._pid}"))),
        }
        return _known(parts)


Source = Served | Entered


def snapshot_of(url: str) -> Snapshot:
    """The state of a trainer, from its answers."""
    address = url.partition("://")[2]
    try:
        status = get_json(f"{url}/performance_status", max_bytes=MOST_BYTES)
        document = get_json(f"{url}/explain", max_bytes=MOST_BYTES)
        with understood(url):
            name = str(status["trainer"]["trainer"])
            return _explained(
                name, address, explanation_of(document), _memory(status), _declared(name, status)
            )
    except Unreachable as error:
        return Snapshot(address, address, problem=str(error))


def _explained(
    name: str, address: str, found: Explanation | None, memory: Mapping[str, float], declared: Sequence[Path]
) -> Snapshot:
    if found is None:
        return Snapshot(name, address, None, "nothing is known yet", memory=memory, paths=tuple(declared))
    paths = (*(_path(name, finding) for finding in found.findings), *declared)
    left = duration_range(*found.time_left) if found.time_left is not None else ""
    measured = (one for one in found.findings if one.kind in _OBJECTS and not one.inferred)
    growing = sum(one.bytes or 0 for one in measured)
    # Not all of them need be resident: some lie on a GPU, or are not touched.
    held = min(float(growing), memory.get("resident", math.inf))
    known = {**memory, _GROWING: held} if growing else memory
    return Snapshot(name, address, found.verdict, headline(found), left, known, paths)


def _path(name: str, found: Finding) -> Path:
    details = [described(found)]
    if found.holders:
        details.append(f"Held by {' < '.join(found.holders)}.")
    if found.site is not None:
        details.append(f"{found.site.file}:{found.site.line}")
    return Path(
        name,
        found.path or found.type,
        found.type,
        found.items,
        found.bytes,
        found.bytes_per_minute,
        None if found.site is None else place_of(found.site),
        found.remedy,
        found.is_leak,
        tuple(details),
    )


def _declared(name: str, status: Mapping[str, Any]) -> list[Path]:
    """Buffers and objects that the trainer has declared."""
    growth = status.get("growth_per_minute", {}).get("object_size", {})
    found = []
    for buffer, levels in status.get("buffers", {}).items():
        bound = levels.get("capacity_items")
        told = () if bound is None else (f"Its bound is {bound:,.0f} items.",)
        found.append(Path(name, buffer, "buffer", levels.get("items"), levels.get("bytes"), details=told))
    for known, held in status.get("object_size_bytes", {}).items():
        found.append(Path(name, known, "object", None, held, growth.get(known)))
    return found


def _memory(status: Mapping[str, Any]) -> dict[str, float]:
    memory = status.get("memory", {})
    resident, unique, malloc = (
        memory.get(f"{kind}_bytes", {}) for kind in ("resident", "unique", "allocator")
    )
    own, alone = resident.get("trainer"), unique.get("trainer")
    parts = {
        **_of_resident(own, malloc.get("used"), malloc.get("retained")),
        "shared": None if own is None or alone is None else max(0.0, own - alone),
        "in workers": unique.get("worker", resident.get("worker")) or None,
        "limit": memory.get("limit_bytes"),
    }
    for device, levels in status.get("gpu_memory", {}).items():
        parts[f"on GPU {device}"] = levels.get("process_bytes", levels.get("allocated_bytes"))
    return _known(parts)


def _of_resident(
    resident: float | None, used: float | None, retained: float | None
) -> dict[str, float | None]:
    """Resident memory, and what of it malloc has handed out, at most, and keeps: blocks may be untouched."""
    most = math.inf if resident is None else resident
    kept = None if retained is None else min(retained, most)
    in_use = None if used is None else min(used, most - (kept or 0.0))
    return {"resident": resident, "in use": in_use, "freed but kept": kept}


def _known(parts: Mapping[str, float | None]) -> dict[str, float]:
    return {part: held for part, held in parts.items() if held is not None}


def printed(found: Iterable[Snapshot]) -> list[str]:
    """The snapshots as lines."""
    lines: list[str] = []
    for one in found:
        lines += [f"{one.trainer} ({one.address}): {one.problem or one.headline}"]
        if one.problem:
            continue
        lines += [f"  memory: {memory_text(one)}"] if one.memory else []
        if one.paths:
            lines += [f"  {row}" for row in aligned([COLUMNS, *map(cells, one.paths[:_MOST_PRINTED])])]
    return lines


def cells(
    one: Path, longest: tuple[int, int, int] = (60, 20, 24), *, of_several: bool = False
) -> tuple[str, ...]:
    """The columns of a path; at most so many characters of its name, its type and its line.

    Of one of several trainers the name comes first.
    """
    trainer = f"{plain(one.trainer)} " if of_several else ""
    return (
        trainer + _end_of(one.path, max(10, longest[0] - len(trainer))),
        plain(one.type, longest[1]),
        "" if one.items is None else f"{one.items:,.0f}",
        "" if one.bytes is None else size(one.bytes),
        "" if not one.bytes_per_minute else size_change(one.bytes_per_minute),
        _end_of(one.line or "", longest[2]),
    )


def _end_of(text: str, most: int) -> str:
    """At most so many characters of a path or a line, whose end tells more than its beginning."""
    return plain(text if len(text) <= most else f"...{text[3 - most :]}")


def memory_text(one: Snapshot) -> str:
    """Memory in one line: its parts, in brackets what is among these, and what is beside it."""
    sizes = {part: size(held) for part, held in one.memory.items()}
    resident, limit = sizes.pop("resident", "unknown"), sizes.pop("limit", "")

    def told(parts: Iterable[str]) -> str:
        return ", ".join(f"{sizes.pop(part)} {plain(part)}" for part in parts if part in sizes)

    text = f"{resident} of {limit}" if limit else resident
    text += f": {split}" if (split := told(_SPLIT)) else ""
    text += f" ({among})" if (among := told(_OVERLAPPING)) else ""
    return text + (f"; beside it {beside}" if (beside := told([*sizes])) else "")
