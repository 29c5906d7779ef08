"""Writes an explanation for continuous integration (annotations, Markdown, JSON); sets the exit code."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from heapwatch.errors import UsageError, reason
from heapwatch.explain.findings import (
    Explanation,
    Finding,
    described,
    headline,
    place_of,
)
from heapwatch.judge.verdict import MEANINGS, WORDS, Word
from heapwatch.runtime import own_files
from heapwatch.text.actions import annotation, append_summary, in_actions
from heapwatch.text.markdown import escaped, table
from heapwatch.text.numbers import size, size_change
from heapwatch.text.terminal import json_text, say

FAIL_ON: tuple[Word, ...] = ("growing", "will not fit", "leak")
FAILED = 2
_ENDINGS = (".md", ".json")


def add_arguments(parser: Any) -> None:
    """Add `--output` and `--fail-on`."""
    parser.add_argument(
        "--output",
        action="append",
        type=_file,
        default=[],
        metavar="FILE",
        help="write the explanation as Markdown (.md) or JSON (.json); may be repeated",
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        metavar="VERDICT",
        help=f"end with exit code {FAILED} for this verdict or a worse one: {', '.join(FAIL_ON)}",
    )


def fails(verdict: Word, fail_on: Word | None) -> bool:
    """Whether a verdict is at least as severe as `fail_on`; without it, whether the verdict is serious."""
    if fail_on is None:
        return MEANINGS[verdict].exit_code == FAILED
    return WORDS.index(verdict) >= WORDS.index(fail_on)


def conclude(
    explanation: Explanation, files: Sequence[str | Path], fail_on: Word | None, stream: TextIO | None = None
) -> int:
    """Write the files and the output for GitHub Actions, and return the exit code.

    Annotations go to `stream`, by default stdout.

    Raises:
        UsageError: a file cannot be written.

    """
    for file in map(Path, files):
        try:
            text = markdown(explanation) if file.suffix == ".md" else json_text(explanation.as_json())
            own_files.replace(file, f"{text}\n", mode=0o644)
        except OSError as error:
            raise UsageError(f"{file} cannot be written: {reason(error)}") from None
    if files or fail_on:
        say(*told_to_actions(explanation, fail_on), stream=stream)
    return FAILED if fails(explanation.verdict, fail_on) else 0


def told_to_actions(explanation: Explanation, fail_on: Word | None) -> list[str]:
    """In a GitHub Actions job, append to its summary and return annotations; elsewhere do nothing."""
    if not in_actions():
        return []
    append_summary(f"{markdown(explanation)}\n")
    level = "error" if fails(explanation.verdict, fail_on) else "warning"
    return [
        annotation(
            level,
            f"Heapwatch: {explanation.verdict}",
            described(finding),
            finding.site.file if finding.site else "",
            finding.site.line if finding.site else 0,
        )
        for finding in _results(explanation)
    ]


def markdown(explanation: Explanation) -> str:
    """Return the verdict and a table of the findings as Markdown."""
    parts = ["### Heapwatch", escaped(headline(explanation))]
    if explanation.findings:
        rows = [list(map(escaped, _cells(finding))) for finding in explanation.findings]
        parts.append(table(("path", "type", "items", "bytes", "a minute", "line"), rows))
    return "\n\n".join(parts)


def _cells(finding: Finding) -> tuple[str, ...]:
    return (
        finding.path or finding.type,
        finding.type,
        "" if finding.items is None else f"{finding.items:,}",
        "" if finding.bytes is None else size(finding.bytes),
        size_change(finding.bytes_per_minute),
        "" if finding.site is None else place_of(finding.site),
    )


def _results(explanation: Explanation) -> list[Finding]:
    if explanation.verdict not in FAIL_ON:
        return []
    serious = [finding for finding in explanation.findings if finding.is_leak or finding.fits is False]
    return serious or list(explanation.findings[:1])


def _file(text: str) -> Path:
    if not text.endswith(_ENDINGS):
        raise argparse.ArgumentTypeError(f"{text!r} ends with none of {', '.join(_ENDINGS)}")
    file = Path(text).absolute()
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"{text!r}: {file.parent} is no folder that can be written")
    return file
