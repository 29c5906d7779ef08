"""What is seen of a process: its verdict, its memory by part, and its paths."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import psutil

from heapwatch.attach import name_of, process_of
from heapwatch.entering.entrance import Entrance
from heapwatch.entering.inside import EXPLANATION
from heapwatch.entering.refusals import CannotEnter
from heapwatch.errors import Unreachable
from heapwatch.explain.findings import (
    Explanation,
    Finding,
    described,
    headline,
    labelled,
    place_of,
    range_text,
)
from heapwatch.explain.received import MOST_BYTES, explanation_of
from heapwatch.http.client import get_json
from heapwatch.measure.process.memory import memory_limit

_AT_ONCE = 16
_LONGEST_NAME = 100
_ABSURD = 1e18  # neither bytes nor items; also what is no number
_TOLD = {"used": "in use", "retained": "freed but kept", "gpu": "on GPUs"}  # by a process that was entered
_OBJECTS = ("container", "type", "buffer")
_FIRST_SECONDS, _POLL_SECONDS = 10.0, 0.1  # until a process that was entered tells something


@dataclass(frozen=True)
class Path:
    """A path, or what is declared under a name; unknown values are None.

    Attributes:
        trainer: the process that it is in.
        path: its name.
        type: in words.
        items: how many it has.
        bytes: what it holds.
        bytes_per_minute: its growth.
        line: the line that fills it.
        remedy: suggested change.
        is_leak: whether it leaks.
        details: all that is known, in sentences.

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
class Seen:
    """A process at one time.

    Attributes:
        trainer: its name.
        address: where it serves, or `pid 123`.
        verdict: None where nothing is known.
        headline: the verdict and what it is about.
        time_left: until memory ends, in words; empty where that is not known.
        memory: bytes by part; `resident` is the process's own, `limit` what it may use.
        paths: most growth first.
        problem: why nothing is known; empty otherwise.

    """

    trainer: str
    address: str
    verdict: str | None = None
    headline: str = ""
    time_left: str = ""
    memory: Mapping[str, float] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()
    problem: str = ""


class Source(Protocol):
    """Reads one process or several."""

    def read(self) -> list[Seen]:
        """What is seen now."""


class Served:
    """Trainers that serve `/explain` and `/performance_status`."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls

    def read(self) -> list[Seen]:
        """Ask all of them at once; one that does not answer has a problem."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(seen_at, self._urls))


class Entered:
    """A process that serves nothing, entered until the exit. To be entered and left in one thread."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._name = name_of(process_of(pid))
        self._entrance = Entrance(pid)

    def __enter__(self) -> Entered:
        answer = self._entrance.ask("explain", name=self._name)
        if not answer.get("enabled", True):
            raise CannotEnter(f"process {self._pid} has HEAPWATCH_EXPLAIN=off in its environment")
        until = time.monotonic() + _FIRST_SECONDS
        while self._entrance.latest(EXPLANATION) is None and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._entrance.__exit__(None, None, None)

    def read(self) -> list[Seen]:
        """What the process has told last, and its memory as the system tells it."""
        address = f"pid {self._pid}"
        if not self._entrance.is_alive():
            return [Seen(self._name, address, problem="it has ended")]
        try:
            document = self._entrance.latest(EXPLANATION)
            found = None if document is None else explanation_of(document)
        except (CannotEnter, ValueError) as error:
            return [Seen(self._name, address, problem=str(error))]
        told = _numbers(_within(document or {}, "memory"))
        memory = _memory_of(self._pid) | {_TOLD[part]: held for part, held in told.items() if part in _TOLD}
        return [_explained(self._name, address, found, memory, ())]


def seen_at(url: str) -> Seen:
    """A trainer by its answers."""
    address = url.partition("://")[2]
    try:
        status = get_json(f"{url}/performance_status", max_bytes=MOST_BYTES)
        if not isinstance(status, dict):
            raise Unreachable(f"{url} does not answer as a trainer does")
        name = str(_within(status, "trainer").get("trainer", "trainer"))[:_LONGEST_NAME]
        declared = tuple(_declared(name, status))
        memory = _memory(status)
        try:
            found = explanation_of(get_json(f"{url}/explain", max_bytes=MOST_BYTES))
        except Unreachable:  # switched off there: the rules judge alone
            leaks = _within(status, "leaks")
            word, about = leaks.get("verdict"), str(leaks.get("message", ""))
            told = labelled(word, about) if isinstance(word, str) else "what grows is not looked for there"  # type: ignore[arg-type]
            return Seen(
                name, address, word if isinstance(word, str) else None, told, memory=memory, paths=declared
            )
        return _explained(name, address, found, memory, declared)
    except (Unreachable, ValueError) as error:
        return Seen(address, address, problem=str(error))


def _explained(
    name: str, address: str, found: Explanation | None, memory: Mapping[str, float], declared: Sequence[Path]
) -> Seen:
    if found is None:
        return Seen(name, address, None, "nothing is known yet", memory=memory, paths=tuple(declared))
    paths = (*(_path(name, finding) for finding in found.findings), *declared)
    left = range_text(found.time_left) if found.time_left is not None else ""
    growing = sum(
        finding.bytes or 0
        for finding in found.findings
        if finding.kind in _OBJECTS and not finding.inferred and finding.shared_with is None
    )
    known = {**memory, "in objects that grow": float(growing)} if growing else memory
    return Seen(name, address, found.verdict, headline(found), left, known, paths)


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
    growth = _within(_within(status, "growth_per_minute"), "object_size")
    found = []
    for buffer, levels in _within(status, "buffers").items():
        if isinstance(levels, dict):
            numbers = _numbers(levels)
            items, held = numbers.get("items"), numbers.get("bytes")
            bound = numbers.get("capacity_items")
            told = () if bound is None else (f"Its bound is {bound:,.0f} items.",)
            found.append(Path(name, str(buffer), "buffer", items, held, details=told))
    for known, held in _numbers(_within(status, "object_size_bytes")).items():
        rate = _numbers(growth).get(known)
        found.append(Path(name, known, "object", None, held, rate))
    return found


def _memory(status: Mapping[str, Any]) -> dict[str, float]:
    memory = _within(status, "memory")
    resident = _numbers(_within(memory, "resident_bytes"))
    unique = _numbers(_within(memory, "unique_bytes")).get("trainer")
    malloc = _numbers(_within(memory, "allocator_bytes"))
    own = resident.get("trainer")
    parts = {
        "resident": own,
        "in use": malloc.get("used"),
        "freed but kept": malloc.get("retained"),
        "shared": None if own is None or unique is None else max(0.0, own - unique),
        "in workers": resident.get("worker") or None,
        "limit": _numbers(memory).get("limit_bytes"),
    }
    for device, levels in _within(status, "gpu_memory").items():
        numbers = _numbers(levels) if isinstance(levels, dict) else {}
        parts[f"on GPU {device}"] = numbers.get("process_bytes", numbers.get("allocated_bytes"))
    return {part: held for part, held in parts.items() if held is not None}


def _memory_of(pid: int) -> dict[str, float]:
    """Memory as the system tells it; empty for a process that has ended."""
    parts: dict[str, float] = {}
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        parts["resident"] = float(process.memory_info().rss)
        children = 0.0
        for child in process.children(recursive=True):
            with suppress(psutil.Error):
                children += child.memory_info().rss
        if children:
            parts["in workers"] = children
        parts["limit"] = float(memory_limit(pathlib.Path(f"/proc/{pid}")))
    return parts


def _within(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {
        str(name)[:_LONGEST_NAME]: float(value)
        for name, value in values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _ABSURD
    }
