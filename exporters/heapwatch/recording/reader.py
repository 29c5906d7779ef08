"""Reading a recorded run, also from a damaged file."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heapwatch.recording.points import Run, from_json
from heapwatch.recording.recorder import FORMAT

_MOST_LINE_BYTES = 2**20
_MOST_NOTES = 10


class NoRecording(Exception):
    """The file holds no recorded run; the message says why."""


def read_recording(path: Path) -> Run:
    """The run recorded in `path`. Lines that cannot be read are skipped and listed in its notes.

    Raises:
        NoRecording: there is nothing to read.

    """
    trainer, points = "", []
    explanation: dict[str, Any] | None = None
    wrong: list[str] = []
    for number, line in enumerate(_lines(path, wrong), 1):
        try:
            document = json.loads(line)
            if isinstance(document, dict) and "heapwatch" in document:
                if document["heapwatch"] != FORMAT:
                    raise NoRecording(
                        f"{path} is of format {document['heapwatch']!r}, this heapwatch reads {FORMAT}"
                    )
                trainer = str(document.get("trainer", ""))
                continue
            if isinstance(document, dict):
                if isinstance(document.get("explanation"), dict):
                    explanation = document["explanation"]
                    continue
                document.pop("index", None)
            points.append(from_json(document))
        except json.JSONDecodeError:
            half = not line.endswith(b"\n")
            wrong.append(f"line {number} is {'half-written' if half else 'not JSON'} and left out")
        except UnicodeDecodeError:
            wrong.append(f"line {number} is not text and left out")
        except (ValueError, RecursionError) as error:
            wrong.append(f"line {number} is left out: {error}")
    if not points:
        raise NoRecording("; ".join([f"{path} holds no recorded run", *wrong[:1]]))
    points.sort(key=lambda point: point.time)
    return Run(trainer or path.name, tuple(points), _bounded(wrong), explanation)


def read_explanation(path: Path) -> dict[str, Any]:
    """The last explanation recorded in `path`.

    Raises:
        NoRecording: there is none.

    """
    found: dict[str, Any] | None = None
    wrong: list[str] = []
    for line in _lines(path, wrong):
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if isinstance(document, dict) and isinstance(document.get("explanation"), dict):
            found = document["explanation"]
    if found is None:
        raise NoRecording("; ".join([f"{path} holds no explanation", *wrong[:1]]))
    return found


def _lines(path: Path, wrong: list[str]) -> Iterator[bytes]:
    """Lines; the last may be incomplete. Of a truncated gzip file the lines before the cut."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            while line := file.readline(_MOST_LINE_BYTES):
                yield line
    except EOFError:
        return  # the trainer still runs, or was killed: all complete lines have been read
    except (zlib.error, gzip.BadGzipFile) as error:
        wrong.append(f"the rest of the file is damaged and left out: {error}")
    except OSError as error:
        raise NoRecording(f"{path} cannot be read: {error.strerror or error}") from None


def _bounded(wrong: list[str]) -> tuple[str, ...]:
    more = len(wrong) - _MOST_NOTES
    return (*wrong[:_MOST_NOTES], *([f"and {more} more like these"] if more > 0 else []))
