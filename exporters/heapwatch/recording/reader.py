"""Reading a recorded run, also from a damaged file, or one that unpacks to gigabytes."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heapwatch.recording.points import Point, Run, from_json
from heapwatch.recording.recorder import FORMAT, Thinning
from heapwatch.runtime.plain_text import plain

_MOST_LINE_BYTES = 2**20
_MOST_BYTES = 100_000_000  # unpacked; what a recorder wrote is shorter
_MOST_KEPT_BYTES = 32_000_000  # of the lines of the points that are kept; those take ten times as much memory
_MOST_POINTS = 50_000
_LEAST_THINNED = 0.05  # share of the points that thinning has to keep, and to drop
_MOST_WRONG = 1000  # lines that cannot be read
_MOST_NOTES = 10
_LONGEST_NOTE, _LONGEST_NAME = 200, 200


class NoRecording(Exception):
    """The file holds no recorded run; the message says why."""


class _TooMuch(Exception):
    """The rest of the file is left out; the message says why."""


class _Wrong:
    """Notes on what is wrong with a file: the first ten, and the number of others."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._count = 0

    def add(self, note: str) -> None:
        """Keep a note, or count it. Raises _TooMuch after a thousand."""
        self._count += 1
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(plain(note, _LONGEST_NOTE))
        if self._count >= _MOST_WRONG:
            raise _TooMuch(f"{_MOST_WRONG:,} lines cannot be read; the rest of the file is left out")

    def all(self) -> tuple[str, ...]:
        """The notes, and how many more there were."""
        more = self._count - len(self.notes)
        return (*self.notes, *([f"and {more} more like these"] if more > 0 else []))


class _Kept:
    """The points that are kept: of fewer cycles once there are many, as the recorder does."""

    def __init__(self) -> None:
        self._thinning = Thinning()
        self._points: list[tuple[int, int, Point]] = []
        self._bytes = 0
        self.is_thinned = False

    def add(self, point: Point, nbytes: int) -> None:
        """Keep a point that was read from so many bytes. Raises _TooMuch where thinning does not help."""
        index = self._thinning.index(point)
        if not self._thinning.keeps(index):
            return
        self._points.append((index, nbytes, point))
        self._bytes += nbytes
        if len(self._points) <= _MOST_POINTS and self._bytes <= _MOST_KEPT_BYTES:
            return
        self._thinning.double()
        fewer = [kept for kept in self._points if self._thinning.keeps(kept[0])]
        if not _LEAST_THINNED < len(fewer) / len(self._points) < 1 - _LEAST_THINNED:
            raise _TooMuch("too many samples of one cycle; the rest is left out")
        self._points, self.is_thinned = fewer, True
        self._bytes = sum(size for _, size, _ in fewer)

    def all(self) -> tuple[Point, ...]:
        """The points in order of time."""
        return tuple(sorted((point for *_, point in self._points), key=lambda point: point.time))


def read_recording(path: Path) -> Run:
    """The run recorded in `path`. Lines that cannot be read are skipped and listed in its notes.

    Raises:
        NoRecording: there is nothing to read.

    """
    trainer, kept, wrong, ended = "", _Kept(), _Wrong(), ""
    explanation: dict[str, Any] | None = None
    try:
        for number, line in enumerate(_lines(path, wrong), 1):
            try:
                document = json.loads(line)
                if isinstance(document, dict) and "heapwatch" in document:
                    if document["heapwatch"] != FORMAT:
                        other = plain(repr(document["heapwatch"]), _LONGEST_NAME)
                        raise NoRecording(f"{path} is of format {other}, this heapwatch reads {FORMAT}")
                    trainer = str(document.get("trainer", ""))[:_LONGEST_NAME]
                    continue
                if isinstance(document, dict):
                    if "explanation" in document:
                        given = document["explanation"]
                        explanation = given if isinstance(given, dict) else explanation
                        continue
                    document.pop("index", None)
                kept.add(from_json(document), len(line))
            except json.JSONDecodeError:
                half = not line.endswith(b"\n")
                wrong.add(f"line {number} is {'half-written' if half else 'not JSON'} and left out")
            except UnicodeDecodeError:
                wrong.add(f"line {number} is not text and left out")
            except (ValueError, OverflowError, RecursionError) as error:
                wrong.add(f"line {number} is left out: {error}")
    except _TooMuch as much:
        ended = str(much)
    points = kept.all()
    if not points:
        reasons = [*wrong.notes[:1], *filter(None, [ended])]
        raise NoRecording("; ".join([f"{path} holds no recorded run", *reasons]))
    thinned = "it has very many samples: some cycles are left out" if kept.is_thinned else ""
    notes = (*wrong.all(), *filter(None, (thinned, ended)))
    return Run(trainer or path.name, points, notes, explanation)


def read_explanation(path: Path) -> dict[str, Any]:
    """The last explanation recorded in `path`.

    Raises:
        NoRecording: there is none.

    """
    found: dict[str, Any] | None = None
    wrong = _Wrong()
    try:
        for number, line in enumerate(_lines(path, wrong), 1):
            try:
                document = json.loads(line)
            except (ValueError, RecursionError):
                wrong.add(f"line {number} is not JSON")
                continue
            if isinstance(document, dict) and isinstance(document.get("explanation"), dict):
                found = document["explanation"]
    except _TooMuch as much:
        wrong.notes.append(str(much))
    if found is None:
        raise NoRecording("; ".join([f"{path} holds no explanation", *wrong.notes[:1]]))
    return found


def _lines(path: Path, wrong: _Wrong) -> Iterator[bytes]:
    """Lines; the last may be incomplete. Of a truncated gzip file the lines before the cut."""
    left = _MOST_BYTES
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            while line := file.readline(_MOST_LINE_BYTES):
                left -= len(line)
                if left < 0:
                    raise _TooMuch(f"it is longer than {_MOST_BYTES / 1e6:.0f} MB; the rest is left out")
                yield line
    except EOFError:
        return  # the trainer still runs, or was killed: all complete lines have been read
    except (zlib.error, gzip.BadGzipFile) as error:
        wrong.add(f"the rest of the file is damaged and left out: {error}")
    except OSError as error:
        raise NoRecording(f"{path} cannot be read: {error.strerror or error}") from None
