"""Explanations of other processes: from JSON, or from a trainer's series."""

from __future__ import annotations

import re
from typing import Any, cast

from heapwatch.analysis.judge import Verdicts
from heapwatch.analysis.readings import Readings
from heapwatch.analysis.verdict import SERIOUS, WORDS, Word
from heapwatch.explain.findings import (
    Explanation,
    Finding,
    FindingKind,
    TimeLeft,
    message,
    narrative,
    ranked,
)
from heapwatch.explain.sites import Site

MOST_BYTES = 4 * 2**20
_REQUIRED = ("kind", "path", "type", "items", "bytes", "items_per_minute", "bytes_per_minute", "share")


def explanation_of(document: Any) -> Explanation:
    """The explanation in a document that `as_json` is said to have made.

    Raises:
        ValueError: it is none that can be shown.

    """
    try:
        explanation = _read(document)
        narrative(explanation)  # nothing in it may fail later
        explanation.as_json()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"it is no explanation: {type(error).__name__}") from None
    return explanation


def _read(document: dict[str, Any]) -> Explanation:
    findings = []
    for found in document["findings"]:
        values = {name: found[name] for name in _REQUIRED}
        values |= {name: value for name, value in found.items() if name in Finding.__dataclass_fields__}
        site = values.get("site")
        values["site"] = None if site is None else Site(**site)
        values["holders"] = tuple(values.get("holders") or ())
        findings.append(Finding(**values))
    left = document.get("time_to_limit_seconds")
    return Explanation(
        document["verdict"],
        float(document["seconds"]),
        float(document["growth_bytes_per_minute"]),
        float(document["explained_share"]),
        tuple(findings),
        str(document.get("detail", "")),
        None if left is None else TimeLeft(float(left["least"]), float(left["most"])),
        tuple(map(str, document.get("unread") or ())),
        float(document.get("gpu_growth_bytes_per_minute", 0.0)),
        bool(document.get("ends_on_gpu")),
    )


_PATH = "trainer_growing_path_"
_LINE = re.compile("[0-9]{1,9}")


def exposed_explanation(readings: Readings) -> Explanation | None:
    """The explanation as far as series carry it; None of a process without one.

    Functions, holders and the growth of items are left out.
    """
    verdicts = readings.by("trainer_memory_verdict", "verdict")
    word = next((word for word in WORDS if verdicts.get(word)), None)
    if word is None:
        return None
    findings = ranked(_findings(readings))
    left = readings.by("trainer_memory_time_to_limit_seconds", "bound")
    return Explanation(
        word,
        0.0,
        readings.value("trainer_memory_growth_bytes_per_minute") or 0.0,
        readings.value("trainer_memory_growth_explained_ratio") or 0.0,
        findings,
        time_left=TimeLeft(left["least"], left["most"]) if {"least", "most"} <= left.keys() else None,
    )


def verdict_of(explanation: Explanation | None, verdicts: Verdicts) -> tuple[Word, str]:
    """The verdict of a process and what it is about; without an explanation, by the rules alone."""
    found = verdicts.found()
    if explanation is not None and (explanation.verdict in SERIOUS or not found):
        return explanation.verdict, message(explanation)
    about = verdicts.waits and f"watched for {verdicts.waits}"
    return verdicts.word, ", ".join(map(str, found)) or about


def _findings(readings: Readings) -> list[Finding]:
    found = []
    for labels, leaks in readings.samples(f"{_PATH}leak"):
        key = {name: labels.get(name, "") for name in ("path", "type", "kind")}

        def of(what: str, key: dict[str, str] = key) -> float | None:
            return readings.value(_PATH + what, **key)

        file, _, line = labels.get("site", "").rpartition(":")
        fits = of("fits")
        found.append(
            Finding(
                kind=cast(FindingKind, key["kind"]),
                path=None if key["path"] == key["type"] else key["path"],
                type=key["type"],
                items=_whole(of("items")),
                bytes=_whole(of("bytes")),
                bytes_per_minute=of("growth_bytes_per_minute") or 0.0,
                share=of("share_ratio") or 0.0,
                capacity_items=_whole(of("capacity_items")),
                site=Site(file, int(line), "") if _LINE.fullmatch(line) else None,
                remedy=labels.get("remedy") or None,
                is_leak=bool(leaks),
                fits=None if fits is None else bool(fits),
            )
        )
    return found


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
