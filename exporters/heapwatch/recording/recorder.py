"""A run's points in a file of bounded size, for trainers without Prometheus."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from heapwatch.recording.points import CYCLES, Point, to_json
from heapwatch.runtime.own_files import check_replaceable

FORMAT = 1
MAX_BYTES = 4_000_000
EARLIER_RUNS = 5


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
