"""Reads the data of `heapwatch top` for a process: its verdict, its memory by part, and its paths."""

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
_FIRST_EXPLANATION_SECONDS, _POLL_SECONDS = 10.0, 0.1  # wait for the first explanation of an entered process


@dataclass(frozen=True)
class Path:
    """A path to an object in a trainer, or a declared object; unknown values are None.

    `line` is the source line that adds to it, `details` are sentences about it.
    """

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
    """The state of a process at one time; `address` is that of its server, or `pid 123`.

    `time_left` says in words when memory runs out. `memory` has bytes by part: `resident` is that of the
    process alone, `limit` applies to it and its workers. `paths` start with the fastest growing. `problem`
    says why there is no state.
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
        """Read all trainers in parallel; the snapshot of one that does not answer has a `problem`."""
        return read_all(self._urls, snapshot_of)


class Entered:
    """A process that does not serve. The `with` block enters and leaves it, both in the same thread.

    Attributes:
        end: the end of the process, if it ended during the `with` block or right after it.

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
        deadline = time.monotonic() + _FIRST_EXPLANATION_SECONDS
        while self._entered.latest(EXPLANATION) is None and time.monotonic() < deadline:
            if self._followed.ended_within(_POLL_SECONDS) is not None:
                break
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        self._entered.__exit__(None, None, None)
        with self._followed:
            if kind is None or issubclass(kind, CannotEnter):
                self.end = self._followed.end("while it was entered, or right after that")

    def read(self) -> list[Snapshot]:
        """Return the last explanation of the process, with its memory as the system reports it."""
        address = f"pid {self._pid}"
        if (ended := self._followed.ended_within(0)) is not None:
            return [Snapshot(self._name, address, problem=f"it {ended.said()}")]
        try:
            document = self._entered.latest(EXPLANATION)
            explanation = None if document is None else explanation_of(document)
        except (CannotEnter, ValueError) as error:
            return [Snapshot(self._name, address, problem=str(error))]
        memory = {} if document is None else document.get("memory", {})
        return [_explained(self._name, address, explanation, self._memory(memory), ())]

    def _memory(self, reported: Mapping[str, float]) -> dict[str, float]:
        """Return memory as the system and the process report it; empty for a process that has ended."""
        try:
            resident = float(self._tree.trainer.memory_info().rss)
        except psutil.Error:
            return {}
        parts: dict[str, float | None] = {
            **_of_resident(resident, reported.get("used"), reported.get("retained")),
            "on GPUs": reported.get("gpu"),
            "in workers": float(sum(self._unique.read(self._tree.workers()).values())) or None,
            "limit": float(memory_limit(pathlib.Path(f"/proc/{self._pid}"))),
        }
        return _without_unknown(parts)


Source = Served | Entered


def snapshot_of(url: str) -> Snapshot:
    """Return the state of a trainer that serves."""
    address = url.partition("://")[2]
    try:
        status = get_json(f"{url}/performance_status", max_bytes=MOST_BYTES)
        document = get_json(f"{url}/explain", max_bytes=MOST_BYTES)
        with understood(url):
            name = str(status["trainer"]["trainer"])
            return _explained(name, address, explanation_of(document), _memory(status), _declared(status))
    except Unreachable as error:
        return Snapshot(address, address, problem=str(error))


def _explained(
    name: str,
    address: str,
    explanation: Explanation | None,
    memory: Mapping[str, float],
    declared: Sequence[Path],
) -> Snapshot:
    if explanation is None:
        return Snapshot(name, address, None, "nothing is known yet", memory=memory, paths=tuple(declared))
    paths = (*map(_path, explanation.findings), *declared)
    time_left = duration_range(*explanation.time_left) if explanation.time_left is not None else ""
    growing = sum(
        finding.bytes or 0
        for finding in explanation.findings
        if finding.kind in _OBJECTS and not finding.inferred
    )
    # Some objects may not be resident: they are on a GPU, or their pages were never written.
    growing_bytes = min(float(growing), memory.get("resident", math.inf))
    parts = {**memory, _GROWING: growing_bytes} if growing else memory
    return Snapshot(name, address, explanation.verdict, headline(explanation), time_left, parts, paths)


def _path(finding: Finding) -> Path:
    details = [described(finding)]
    if finding.holders:
        details.append(f"Held by {' < '.join(finding.holders)}.")
    if finding.site is not None:
        details.append(f"{finding.site.file}:{finding.site.line}")
    return Path(
        finding.path or finding.type,
        finding.type,
        finding.items,
        finding.bytes,
        finding.bytes_per_minute,
        None if finding.site is None else place_of(finding.site),
        finding.remedy,
        finding.is_leak,
        tuple(details),
    )


def _declared(status: Mapping[str, Any]) -> list[Path]:
    """Return the buffers and objects that the trainer has declared."""
    growth = status.get("growth_per_minute", {}).get("object_size", {})
    declared = []
    for buffer, levels in status.get("buffers", {}).items():
        bound = levels.get("capacity_items")
        details = () if bound is None else (f"Its bound is {bound:,.0f} items.",)
        declared.append(Path(buffer, "buffer", levels.get("items"), levels.get("bytes"), details=details))
    for name, size_bytes in status.get("object_size_bytes", {}).items():
        declared.append(Path(name, "object", None, size_bytes, growth.get(name)))
    return declared


def _memory(status: Mapping[str, Any]) -> dict[str, float]:
    memory = status.get("memory", {})
    resident, unique, malloc = (
        memory.get(f"{kind}_bytes", {}) for kind in ("resident", "unique", "allocator")
    )
    resident_own, unique_own = resident.get("trainer"), unique.get("trainer")
    parts = {
        **_of_resident(resident_own, malloc.get("used"), malloc.get("retained")),
        "shared": None if resident_own is None or unique_own is None else max(0.0, resident_own - unique_own),
        "in workers": unique.get("worker", resident.get("worker")) or None,
        "limit": memory.get("limit_bytes"),
    }
    for device, levels in status.get("gpu_memory", {}).items():
        parts[f"on GPU {device}"] = levels.get("process_bytes", levels.get("allocated_bytes"))
    return _without_unknown(parts)


def _of_resident(
    resident: float | None, used: float | None, retained: float | None
) -> dict[str, float | None]:
    """Split resident memory into what malloc has in use and what it keeps for reuse.

    Both are upper bounds: pages of a block may never have been written.
    """
    upper_bound = math.inf if resident is None else resident
    kept_bytes = None if retained is None else min(retained, upper_bound)
    in_use = None if used is None else min(used, upper_bound - (kept_bytes or 0.0))
    return {"resident": resident, "in use": in_use, "freed but kept": kept_bytes}


def _without_unknown(parts: Mapping[str, float | None]) -> dict[str, float]:
    return {part: value for part, value in parts.items() if value is not None}


def printed(snapshots: Iterable[Snapshot]) -> list[str]:
    """Format the snapshots as lines."""
    lines: list[str] = []
    for snapshot in snapshots:
        lines += [f"{snapshot.trainer} ({snapshot.address}): {snapshot.problem or snapshot.headline}"]
        if snapshot.problem:
            continue
        lines += [f"  memory: {memory_text(snapshot)}"] if snapshot.memory else []
        if snapshot.paths:
            lines += [f"  {row}" for row in aligned([COLUMNS, *map(cells, snapshot.paths[:_MOST_PRINTED])])]
    return lines


def cells(path: Path, lengths: tuple[int, int, int] = (60, 20, 24)) -> tuple[str, ...]:
    """Format the columns of a path; `lengths` are the most characters of its name, its type and its line."""
    return (
        _end_of(path.path, lengths[0]),
        plain(path.type, lengths[1]),
        "" if path.items is None else f"{path.items:,.0f}",
        "" if path.bytes is None else size(path.bytes),
        "" if not path.bytes_per_minute else size_change(path.bytes_per_minute),
        _end_of(path.line or "", lengths[2]),
    )


def _end_of(text: str, most: int) -> str:
    """Cut a path or a line to `most` characters from its beginning, as its end says more."""
    return plain(text if len(text) <= most else f"...{text[3 - most :]}")


def memory_text(snapshot: Snapshot) -> str:
    """Format memory in one line: its parts, in brackets the parts that overlap them, then other memory."""
    sizes = {part: size(value) for part, value in snapshot.memory.items()}
    resident, limit = sizes.pop("resident", "unknown"), sizes.pop("limit", "")

    def take(parts: Iterable[str]) -> str:
        return ", ".join(f"{sizes.pop(part)} {plain(part)}" for part in parts if part in sizes)

    text = f"{resident} of {limit}" if limit else resident
    text += f": {split}" if (split := take(_SPLIT)) else ""
    text += f" ({overlapping})" if (overlapping := take(_OVERLAPPING)) else ""
    return text + (f"; beside it {others}" if (others := take([*sizes])) else "")
