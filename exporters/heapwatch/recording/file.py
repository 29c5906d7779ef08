"""A run as a file of bounded size: written by a trainer, read again also where the file is damaged."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from heapwatch.recording.points import CYCLES, Point, Run, from_json, to_json
from heapwatch.runtime.own_files import check_replaceable
from heapwatch.runtime.plain_text import plain

FORMAT = 1
MAX_BYTES = 4_000_000
EARLIER_RUNS = 5
_MOST_LINE_BYTES = 2**20
_MOST_BYTES = 100_000_000  # unpacked; what a recorder wrote is shorter
_MOST_KEPT_BYTES = 32_000_000  # of the lines of the points that are kept; those take ten times as much memory
_MOST_POINTS = 50_000
_LEAST_THINNED = 0.05  # share of the points that thinning has to keep, and to drop
_MOST_WRONG = 1000  # lines that cannot be read
_MOST_NOTES = 10
_LONGEST_NOTE, _LONGEST_NAME = 200, 200


class Thinning:
    """Keeps whole cycles: all at first, then every second one, every fourth, and so on; always the start.

    If no cycles are counted, it keeps every second, fourth, … point.
    """

    def __init__(self) -> None:
        self._stride = 1
        self._points = 0

    def index(self, point: Point) -> int:
        """Index of the next point: the number of its cycle, else its own; 0 is always kept."""
        self._points += 1
        if point.event == "start":
            return 0
        unit = next((unit for unit in CYCLES if unit in point.progress), None)
        return self._points if unit is None else point.cycle(unit)

    def keeps(self, index: int) -> bool:
        """Whether a point of this index is kept."""
        return index % self._stride == 0

    def double(self) -> None:
        """Keep half as many from now on."""
        self._stride *= 2


class Recorder:
    """Writes each point as a line of JSON and flushes it, so that it survives the process.

    A file of an earlier run becomes `PATH.1`, that one `PATH.2`, up to `PATH.5`. Each time the file reaches
    `max_bytes`, every second cycle is dropped, and from then on only every second one is recorded. If no
    cycles are counted, points are dropped instead.

    Args:
        path: the file; compressed if it ends in `.gz`.
        about: fields of the first line.
        max_bytes: approximate limit of the file's size.
        explain: returns the explanation as a JSON object; written when its verdict or paths change, and at
            the end.

    Raises:
        OSError: the file cannot be written, or its name is taken by a folder, a pipe or a device.

    """

    name = "recorder"

    def __init__(
        self,
        path: Path,
        about: dict[str, Any],
        max_bytes: int = MAX_BYTES,
        explain: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self.path = path
        self._explain = explain
        self._last_written: list[Any] = []
        self._max_bytes = max_bytes
        self._thinning = Thinning()
        self._large: tuple[int, Point] | None = None
        check_replaceable(path)
        _shift(path)
        self._file: IO[bytes] | None = _open(path, "xb")
        self._line({"heapwatch": FORMAT, **about})

    def take(self, point: Point) -> None:
        """Write the point, unless thinning drops it."""
        if self._file is None:
            return
        index = self._thinning.index(point)
        if point.large:
            self._large = index, point
        if not self._thinning.keeps(index):
            return
        try:
            self._line({"index": index, **to_json(point)})
            self._write_explanation(index)
            if self.path.stat().st_size > self._max_bytes:
                self._thin()
        except OSError:
            self._file = None  # a broken stream; the lines so far can be read
            raise

    def close(self) -> None:
        """Write the end of the file."""
        if self._file is not None:
            try:
                if self._large is not None and not self._thinning.keeps(self._large[0]):
                    self._line({"index": 0, **to_json(self._large[1])})
                self._write_explanation(0, last=True)
            finally:
                self._shut()

    def _shut(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write_explanation(self, index: int, *, last: bool = False) -> None:
        if self._explain is None:
            return
        document = self._explain()
        about = [document["verdict"], *(found["path"] for found in document["findings"])]
        if about != self._last_written or last:
            self._last_written = about
            self._line({"index": index, "explanation": document})

    def _line(self, document: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def _thin(self) -> None:
        self._shut()
        self._thinning.double()
        thinner = self.path.with_name(self.path.name + ".thinner")
        thinner.unlink(missing_ok=True)
        with _open(self.path, "rb") as before, _open(thinner, "xb", like=self.path) as after:
            for line in before:
                if self._thinning.keeps(json.loads(line).get("index", 0)):
                    after.write(line)
        thinner.replace(self.path)
        self._file = _open(self.path, "ab")


def _open(path: Path, mode: str, like: Path | None = None) -> IO[bytes]:
    """New files use mode "x", which does not follow an existing symbolic link."""
    if (like or path).suffix == ".gz":
        return gzip.open(path, mode, compresslevel=3)  # type: ignore[return-value]
    return path.open(mode)


def _shift(path: Path) -> None:
    if not path.exists():
        return
    for number in range(EARLIER_RUNS, 0, -1):
        earlier = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
        if earlier.exists():
            os.replace(earlier, path.with_name(f"{path.name}.{number}"))


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
