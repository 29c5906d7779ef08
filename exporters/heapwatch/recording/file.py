"""Writes a run to a file of JSON lines, and reads such a file, also while it is being written."""

from __future__ import annotations

import gzip
import json
import logging
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from heapwatch.recording.points import Pace, Point, Run, from_json, to_json
from heapwatch.runtime.own_files import check_replaceable

log = logging.getLogger("heapwatch")

FORMAT = 1
EARLIER_RUNS = 5
_PACE = 1e-3  # 4 MB for each phase after a month


class Recorder:
    """Writes each point as a line of JSON and flushes it, so that it survives the process.

    Rotates files of earlier runs to `PATH.1` up to `PATH.5`. Records fewer cycles as the run gets longer: see
    `Pace`.

    Args:
        path: the file; compressed if it ends in `.gz`.
        header: fields of the first line.
        explain: returns the explanation as a JSON object; written when its verdict or paths change, and at
            the end.

    Raises:
        OSError: the file cannot be written, or its name is taken by a folder, a pipe or a device.

    """

    name = "recorder"

    def __init__(
        self,
        path: Path,
        header: dict[str, Any],
        explain: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self.path = path
        self._explain = explain
        self._last_written: list[Any] = []
        self._pace = Pace(_PACE)
        check_replaceable(path)
        _rotate(path)
        self._file: IO[bytes] | None = _open(path, "xb")  # does not follow an existing symbolic link
        self._line({"heapwatch": FORMAT, **header})

    def take(self, point: Point) -> None:
        """Write the point, unless `Pace` skips it."""
        if self._file is None or not self._pace.keeps(point):
            return
        try:
            self._line(to_json(point))
            self._write_explanation()
        except OSError:
            self._file = None  # a broken stream; the lines so far can be read
            raise

    def close(self) -> None:
        """Write the last explanation and close the file."""
        if self._file is not None:
            try:
                self._write_explanation(last=True)
            finally:
                self._file.close()
                self._file = None

    def _write_explanation(self, *, last: bool = False) -> None:
        if self._explain is None:
            return
        document = self._explain()
        summary = [document["verdict"], *(finding["path"] for finding in document["findings"])]
        if summary != self._last_written or last:
            self._last_written = summary
            self._line({"explanation": document})

    def _line(self, document: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")
        self._file.flush()


def _open(path: Path, mode: str) -> IO[bytes]:
    if path.suffix == ".gz":
        return gzip.open(path, mode, compresslevel=3)  # type: ignore[return-value]
    return path.open(mode)


def _rotate(path: Path) -> None:
    if not path.exists():
        return
    for number in range(EARLIER_RUNS, 0, -1):
        earlier = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
        if earlier.exists():
            os.replace(earlier, path.with_name(f"{path.name}.{number}"))


class NoRecording(Exception):
    """The file holds no recorded run; the message says why."""


def read_recording(path: Path) -> Run:
    """The run recorded in `path`; its last line may be incomplete.

    Raises:
        NoRecording: the file has no points, or a line before the last is not part of a record.

    """
    trainer, points = path.name, []
    explanation: dict[str, Any] | None = None
    for number, document in enumerate(_documents(path), 1):
        try:
            if "heapwatch" in document:
                if document["heapwatch"] != FORMAT:
                    raise ValueError(f"format {document['heapwatch']!r}, this heapwatch reads {FORMAT}")
                trainer = document["trainer"]
            elif "explanation" in document:
                explanation = document["explanation"]
            else:
                points.append(from_json(document))
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise NoRecording(f"{path} is not a record, in line {number}: {error}") from None
    if not points:
        raise NoRecording(f"{path} holds no recorded run")
    return Run(trainer, tuple(points), explanation)


def read_explanation(path: Path) -> dict[str, Any]:
    """The last explanation recorded in `path`.

    Raises:
        NoRecording: there is none.

    """
    explanation = read_recording(path).explanation
    if explanation is None:
        raise NoRecording(f"{path} holds no explanation")
    return dict(explanation)


def _documents(path: Path) -> list[Any]:
    """The documents of all complete lines; the last one may be incomplete, and gzip truncated."""
    documents: list[Any] = []
    try:
        with path.open("rb") as raw:
            magic = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path) if magic else path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    log.warning("%s: the last line is incomplete and left out", path)
                    break
                documents.append(json.loads(line))
    except EOFError:
        pass  # the trainer still runs, or was killed
    except (ValueError, RecursionError, zlib.error) as error:
        raise NoRecording(f"{path} is not a record, in line {len(documents) + 1}: {error}") from None
    except OSError as error:
        raise NoRecording(f"{path} cannot be read: {error.strerror or error}") from None
    return documents
