"""Our own: `heapwatch run --json`, which nothing in the script knows of."""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.cases.score import ToolFinding

TITLE = "heapwatch"
RULE = (
    "`heapwatch run --json`; findings are those that it calls leaks, and bounded buffers that it says are "
    "filling. The time is that of the first answer of `/explain` that calls a leak"
)


def command(script: Path, seconds: float) -> list[str]:
    program = [sys.executable, "-m", "heapwatch.cli.main", "run"]
    return [*program, "--json", "--seconds", f"{seconds:g}", str(script)]


def last_document(text: str) -> dict[str, Any]:
    """The JSON object that ends a program's output; the program may have printed anything before it.

    Raises:
        ValueError: there is none.

    """
    decoder = json.JSONDecoder()
    position = len(text)
    while (position := text.rfind("{", 0, position)) >= 0:
        if position and text[position - 1] != "\n":
            continue
        try:
            document, end = decoder.raw_decode(text, position)
        except ValueError:
            continue
        if isinstance(document, dict) and "verdict" in document and not text[end:].strip():
            return document
    raise ValueError("no explanation at the end of the output")


def findings(document: dict[str, Any]) -> tuple[ToolFinding, ...]:
    """Findings of an explanation: what is a leak, and what fills towards an end."""
    return tuple(
        ToolFinding(
            path=found["path"],
            type=found["type"],
            kind=found["kind"],
            sites=((found["site"]["file"], found["site"]["line"]),) if found["site"] else (),
            share=found["share"],
            bounded=not found["is_leak"],
        )
        for found in document["findings"]
        if found["is_leak"] or _is_filling(document, found)
    )


def _is_filling(document: dict[str, Any], found: dict[str, Any]) -> bool:
    return (
        document["verdict"] in ("filling", "will not fit", "leak")
        and found["capacity_items"] is not None
        and (found["bytes_per_minute"] or 0) > 0
    )


class Watcher:
    """Asks the running trainer for its explanation, and remembers when it first called a leak."""

    def __init__(self, targets: Path) -> None:
        self.targets = targets
        self.seconds: float | None = None

    def poll(self, pid: int, seconds: float) -> None:
        """Ask once; a trainer that does not answer yet is asked again next time."""
        if self.seconds is None and any(findings(document) for document in self._answers()):
            self.seconds = seconds

    def _answers(self) -> list[dict[str, Any]]:
        answers = []
        for path in self.targets.glob("*.json"):
            try:
                address = json.loads(path.read_text())[0]["targets"][0]
                with urllib.request.urlopen(f"http://{address}/explain", timeout=2) as answer:
                    answers.append(json.load(answer))
            except (OSError, ValueError, LookupError):
                continue
        return answers
