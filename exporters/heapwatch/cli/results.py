"""An explanation for continuous integration: JUnit, SARIF, Markdown, JSON, and whether the job fails."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, TextIO
from xml.etree import ElementTree

from heapwatch.analysis.verdict import MEANINGS, WORDS, Word
from heapwatch.errors import UsageError, reason
from heapwatch.explain.findings import (
    Explanation,
    Finding,
    described,
    headline,
    narrative,
    place_of,
    size_text,
)
from heapwatch.runtime import own_files
from heapwatch.runtime.plain_text import (
    annotation,
    append_summary,
    in_actions,
    json_text,
    plain,
    relative,
    say,
)

FAIL_ON: tuple[Word, ...] = ("growing", "will not fit", "leak")
FAILED = 2
_ENDINGS = (".xml", ".sarif", ".md", ".json")
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HOME = "https://github.com/heapwatch/heapwatch"


def add_arguments(parser: Any) -> None:
    """Add `--output` and `--fail-on`."""
    parser.add_argument(
        "--output",
        action="append",
        type=_file,
        default=[],
        metavar="FILE",
        help="write the explanation as JUnit (.xml), SARIF (.sarif), Markdown (.md) or JSON; may be repeated",
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        metavar="VERDICT",
        help=f"end with exit code {FAILED} for this verdict or a worse one: {', '.join(FAIL_ON)}",
    )


def fails(verdict: Word, fail_on: Word | None) -> bool:
    """Whether a verdict is at least as severe as this one; without one, whether it is serious."""
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
            own_files.replace(file, f"{_written(explanation, file.suffix, fail_on)}\n", mode=0o644)
        except OSError as error:
            raise UsageError(f"{file} cannot be written: {reason(error)}") from None
    if files or fail_on:
        say(*told_to_actions(explanation, fail_on), stream=stream)
    return FAILED if fails(explanation.verdict, fail_on) else 0


def _written(explanation: Explanation, ending: str, fail_on: Word | None) -> str:
    if ending == ".xml":
        return junit(explanation, fail_on)
    if ending == ".sarif":
        return sarif(explanation, fail_on)
    return markdown(explanation) if ending == ".md" else json_text(explanation.as_json())


def told_to_actions(explanation: Explanation, fail_on: Word | None) -> list[str]:
    """Add to the summary of a GitHub Actions job, and return its annotations; elsewhere do nothing."""
    if not in_actions():
        return []
    append_summary(f"{markdown(explanation)}\n")
    level = "error" if fails(explanation.verdict, fail_on) else "warning"
    return [
        annotation(
            level,
            f"Heapwatch: {explanation.verdict}",
            described(found),
            found.site.file if found.site else "",
            found.site.line if found.site else 0,
        )
        for found in _results(explanation)
    ]


def junit(explanation: Explanation, fail_on: Word | None) -> str:
    """One test case: it fails as `--fail-on` says, and is skipped if it is too early to tell."""
    failed, early = fails(explanation.verdict, fail_on), explanation.verdict == "too early"
    counts = {"tests": "1", "failures": str(int(failed)), "skipped": str(int(early))}
    suites = ElementTree.Element("testsuites", counts)
    seconds = f"{explanation.seconds:.1f}"
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "heapwatch", "time": seconds, **counts})
    case = {"classname": "heapwatch", "name": "memory does not leak", "time": seconds}
    test = ElementTree.SubElement(suite, "testcase", case)
    about = {"message": plain(headline(explanation))}
    if failed:
        ElementTree.SubElement(test, "failure", {"type": explanation.verdict, **about}).text = narrative(
            explanation
        )
    elif early:
        ElementTree.SubElement(test, "skipped", about)
    return ElementTree.tostring(suites, encoding="unicode")


def sarif(explanation: Explanation, fail_on: Word | None) -> str:
    """SARIF 2.1.0 with one result for each serious finding."""
    level = "error" if fails(explanation.verdict, fail_on) else "warning"
    rules = [{"id": _rule(word), "shortDescription": {"text": MEANINGS[word].claim}} for word in FAIL_ON]
    results = []
    for found in _results(explanation):
        result: dict[str, Any] = {
            "ruleId": _rule(explanation.verdict),
            "level": level,
            "message": {"text": plain(described(found))},
            "partialFingerprints": {"path/v1": plain(found.path or found.type)},
        }
        if found.site is not None:
            place = {"artifactLocation": {"uri": relative(found.site.file)}}
            region = {"region": {"startLine": max(1, found.site.line)}}
            result["locations"] = [{"physicalLocation": {**place, **region}}]
        results.append(result)
    driver = {"name": "Heapwatch", "informationUri": _HOME, "rules": rules}
    return json_text(
        {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    )


def markdown(explanation: Explanation) -> str:
    """The verdict and a table of the findings."""
    lines = ["### Heapwatch", "", _text(headline(explanation))]
    if explanation.findings:
        lines += ["", "| path | type | items | bytes | a minute | line |", "|---|---|---|---|---|---|"]
        for found in explanation.findings:
            cells = (
                found.path or found.type,
                found.type,
                "" if found.items is None else f"{found.items:,}",
                "" if found.bytes is None else size_text(found.bytes),
                f"+{size_text(found.bytes_per_minute)}",
                "" if found.site is None else place_of(found.site),
            )
            lines.append(f"| {' | '.join(map(_text, cells))} |")
    return "\n".join(lines)


def _results(explanation: Explanation) -> list[Finding]:
    if explanation.verdict not in FAIL_ON:
        return []
    serious = [found for found in explanation.findings if found.is_leak or found.fits is False]
    return serious or list(explanation.findings[:1])


def _rule(word: Word) -> str:
    return word.replace(" ", "-")


def _text(text: str) -> str:
    return escape(plain(text), quote=False).replace("|", "\\|")


def _file(text: str) -> Path:
    if not text.endswith(_ENDINGS):
        raise argparse.ArgumentTypeError(f"{text!r} ends with none of {', '.join(_ENDINGS)}")
    return Path(text).absolute()
