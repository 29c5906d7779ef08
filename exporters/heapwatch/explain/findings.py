"""Findings and explanations: as data, as JSON and as text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from heapwatch.explain.sites import Site
from heapwatch.judge.memory import TimeLeft
from heapwatch.judge.trainer import Leak
from heapwatch.judge.verdict import Word
from heapwatch.text.numbers import count_change, duration, duration_range, size
from heapwatch.text.terminal import plain

FindingKind = Literal["container", "type", "buffer", "native", "allocator", "gpu", "worker", "level"]
TOUCHED = "touched"  # ends the type of an array of which pages are counted
OUTSIDE = "held from outside Python"
_LEAST_SHARE = 0.005
_LEAST_RATE = 1000.0  # bytes a minute; growth below it is not mentioned
_ON_GPU, _ALSO_ON_GPU = 0.95, 0.05  # shares of the growth
_HOW_TO_READ = (
    "Another thread may have been changing them; `watch.step()` in the training thread lets them be read"
)


@dataclass(frozen=True)
class Finding:
    """Something that grows.

    Attributes:
        kind: the sort of thing that grows; `level` is a declared or standard level that leaks.
        path: the way to it from a root; None if no Python object refers to it.
        type: the types of the container and its items, in words.
        items: number of items; None if they are not counted.
        bytes: bytes that it holds; None if they are not measured.
        items_per_minute: growth of the number of items.
        bytes_per_minute: growth of the bytes.
        share: share of the process's growth, 0 to 1.
        capacity_items: bound of the number of items; None if it has no bound.
        site: the line that fills it; None if unknown.
        holders: what refers to it, the nearest first.
        remedy: suggested change; None if none is known.
        is_leak: whether it grows without a bound and is material.
        steady: whether it has grown at an even rate for minutes, which a filling cache does not.
        inferred: whether its bytes are growth that nothing else explains, and are not measured.
        fits: whether the memory that is left suffices for it when it is full; None if not known.
        shared_with: path of another container that keeps the same items; None if none is known.

    """

    kind: FindingKind
    path: str | None
    type: str
    items: int | None = None
    bytes: int | None = None
    items_per_minute: float | None = None
    bytes_per_minute: float = 0.0
    share: float = 0.0
    capacity_items: int | None = None
    site: Site | None = None
    holders: tuple[str, ...] = ()
    remedy: str | None = None
    is_leak: bool = False
    steady: bool = False
    inferred: bool = False
    fits: bool | None = None
    shared_with: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The finding with plain values."""
        document = asdict(self)
        document["site"] = None if self.site is None else self.site._asdict()
        document["holders"] = list(self.holders)
        for name in ("items_per_minute", "bytes_per_minute", "share"):
            if document[name] is not None:
                document[name] = round(document[name], 3)
        return document


@dataclass(frozen=True)
class Explanation:
    """The verdict on a process and its findings, sorted by `ranked`.

    Attributes:
        gpu_growth_bytes_per_minute: the part of the growth that is memory of GPUs.
        time_left: until memory reaches its limit; None unless its growth is sure.
        ends_on_gpu: whether it is the memory of a GPU that ends then.
        unread: what could not be read the last time, since another thread might have been changing it.
        leaks: what leaks, by resource and component.
        other_machines: number of machines of the same Ray cluster, which were not looked at.
        after_cleanup: what a cleanup of the last minutes gave back, and whether memory has grown since.

    """

    verdict: Word
    seconds: float
    growth_bytes_per_minute: float
    explained_share: float
    findings: tuple[Finding, ...] = ()
    detail: str = ""
    time_left: TimeLeft | None = None
    unread: tuple[str, ...] = ()
    gpu_growth_bytes_per_minute: float = 0.0
    ends_on_gpu: bool = False
    leaks: tuple[Leak, ...] = ()
    after_cleanup: str = ""
    other_machines: int = 0

    def as_json(self) -> dict[str, Any]:
        """The JSON document of `GET /explain`."""
        left = self.time_left
        return {
            "verdict": self.verdict,
            "message": message(self),
            "detail": self.detail,
            "seconds": round(self.seconds, 1),
            "growth_bytes_per_minute": round(self.growth_bytes_per_minute),
            "gpu_growth_bytes_per_minute": round(self.gpu_growth_bytes_per_minute),
            "time_to_limit_seconds": left and {"least": round(left.least), "most": round(left.most)},
            "ends_on_gpu": self.ends_on_gpu,
            "explained_share": round(self.explained_share, 3),
            "findings": [finding.as_json() for finding in self.findings],
            "leaks": [
                {
                    "resource": leak.component.resource,
                    "component": leak.component.name,
                    "reason": leak.reason,
                    "per_minute": round(leak.per_minute, 3),
                }
                for leak in self.leaks
            ],
            "unread": list(self.unread),
            "after_cleanup": self.after_cleanup,
            "other_machines": self.other_machines,
        }


def narrative(explanation: Explanation) -> str:
    """The message, then one line for each further finding."""
    shown = foremost(explanation)
    others = [finding for finding in explanation.findings if finding is not shown]
    lines = [headline(explanation), *(f"  {described(found)}" for found in others)]
    if explanation.unread:
        lines.append(f"  Not read: {' and '.join(explanation.unread)}. {_HOW_TO_READ}.")
    return "\n".join(map(plain, lines))


def headline(explanation: Explanation) -> str:
    """The verdict and its explanation in one line."""
    return labelled(explanation.verdict, message(explanation))


def labelled(word: Word, about: str) -> str:
    """A verdict in front of what it is about; a text that begins with it stays."""
    if about.lower().startswith(word):
        return word + about[len(word) :]
    return f"{word}: {about}" if about else word


def foremost(explanation: Explanation) -> Finding | None:
    """The finding that the message is about: the first leak, the first that will not fit, or the first."""
    findings = explanation.findings
    serious = [*(one for one in findings if one.is_leak), *(one for one in findings if one.fits is False)]
    return next(iter([*serious, *findings]), None)


def grows_in_workers(explanation: Explanation) -> Finding | None:
    """The finding about memory of child processes, if it grows in them and not with their number."""
    workers = (one for one in explanation.findings if one.kind == "worker" and one.path is None)
    return next((one for one in workers if not one.items_per_minute), None)


def message(explanation: Explanation) -> str:
    """The explanation in one line."""
    verdict, first = explanation.verdict, foremost(explanation)
    grows = growth_text(explanation.growth_bytes_per_minute, explanation.gpu_growth_bytes_per_minute)
    so_far = f"So far, {described(first)}" if first else ""
    left = ""
    if explanation.time_left is not None:
        which = "GPU memory" if explanation.ends_on_gpu else "Memory"
        left = f"{which} ends in {duration_range(*explanation.time_left)} at this rate."
    if verdict == "too early":
        after = f" after {duration(explanation.seconds)}" if explanation.seconds else ""
        said = [f"Too early to tell{after}.", explanation.detail, so_far, left]
    elif verdict == "healthy":
        here = " on this machine" if explanation.other_machines else ""
        said = [f"Nothing leaks{here}.", explanation.detail]
    elif verdict == "warm-up":
        rate = f" by {size(explanation.growth_bytes_per_minute)}/min" if grows else ""
        said = [f"No leak. Memory grew{rate} and slows down: a warm-up."]
    elif verdict == "growing":
        said = [explanation.detail, so_far, left]
    elif verdict == "filling" or (verdict == "will not fit" and first is not None and first.capacity_items):
        said = [grows, _filling(explanation), explanation.detail, left]
    else:
        said = [grows, described(first) if first else "", left]
    return " ".join(filter(None, [*said, _elsewhere(explanation.other_machines), explanation.after_cleanup]))


def _elsewhere(machines: int) -> str:
    if not machines:
        return ""
    which = f"{machines} other machines of this Ray cluster were"
    if machines == 1:
        which = "One other machine of this Ray cluster was"
    return f"{which} not looked at: see `heapwatch ray`."


def described(finding: Finding) -> str:
    """A finding in one or two sentences."""
    share = f"{finding.share:.0%} of it is " if finding.share >= _LEAST_SHARE else ""
    if finding.inferred:
        share = "It is not measured, but probably kept by "
    what = f"`{finding.path}`" if finding.path else finding.type
    facts = [finding.type] if finding.path else []
    if finding.items_per_minute:
        facts.append(f"{count_change(finding.items_per_minute)} items/min")
    if finding.items and finding.bytes and not finding.inferred:
        facts.append(f"{size(_bytes_each(finding))} each")
    elif finding.bytes and not finding.inferred:
        facts.append(f"{size(finding.bytes)} now")
    elif finding.items:
        facts.append(f"{finding.items:,} now")
    if finding.path or finding.capacity_items is not None:
        facts.append("no bound" if finding.capacity_items is None else f"bound {finding.capacity_items:,}")
    if finding.shared_with:
        facts.append(f"`{finding.shared_with}` keeps the same items")
    text = f"{share}{what}" + (f" ({', '.join(facts)})" if facts else "")
    if not finding.path and finding.holders:
        held = " < ".join(finding.holders)
        text += f", {held}" if held == OUTSIDE else f", held by {held}"
    if not share:
        text += " leaks" if finding.is_leak else " grows"
    text += _filled_at(finding) + "."
    if finding.remedy:
        text += f" Suggested: {finding.remedy}."
    return text


def _bytes_each(finding: Finding) -> float:
    """Bytes of an item: of those that come now, so that the rates of items and of bytes agree."""
    held = (finding.bytes or 0) / (finding.items or 1)
    per_item = finding.bytes_per_minute / (finding.items_per_minute or math.inf)
    return per_item or held


def size_when_full(finding: Finding) -> float:
    """Bytes of a buffer that has all its items: what it holds, and items like those that come now."""
    missing = (finding.capacity_items or 0) - (finding.items or 0)
    return (finding.bytes or 0) + missing * _bytes_each(finding)


def place_of(site: Site) -> str:
    """The line as `train.py:16`."""
    file = site.file.replace("\\", "/").rpartition("/")[2]
    return f"{file}:{site.line}"


def _filled_at(finding: Finding) -> str:
    if finding.site is None:
        return ""
    within = f" in `{finding.site.function}`" if finding.site.function else ""
    how = "taken" if finding.kind == "native" else "filled"
    return f", {how} at {place_of(finding.site)}{within}"


def _filling(explanation: Explanation) -> str:
    """What fills, and what it will hold; the line of what will not fit is told."""
    buffers = [finding for finding in explanation.findings if finding.kind == "buffer"]
    growing = [one for one in buffers if (one.items or 0) < (one.capacity_items or 0)]
    unfit = [one for one in growing if one.fits is False]
    finding = next(iter([*unfit, *growing, *explanation.findings]), None)
    if finding is None:
        return ""
    capacity = finding.capacity_items
    if not (capacity and finding.items and finding.bytes):
        return described(finding)
    full = size(size_when_full(finding))
    unit, of_pages = ("pages", f" ({finding.type})") if finding.type.endswith(TOUCHED) else ("items", "")
    state = f"`{finding.path}`{of_pages} is filling: {finding.items:,} of {capacity:,} {unit}"
    if finding.fits is not False:
        return f"{state}; it will hold {full} when full."
    return f"{state}{_filled_at(finding)}; it would hold {full} when full."


def growth_text(grown: float, on_gpu: float) -> str:
    """Such as "GPU memory grows by 2 GB/min."; empty if the growth, in bytes a minute, is not material."""
    if grown < _LEAST_RATE:
        return ""
    if on_gpu < _ON_GPU * grown:
        part = f", {size(on_gpu)}/min of it on GPUs" if on_gpu > _ALSO_ON_GPU * grown else ""
        return f"Memory grows by {size(grown)}/min{part}."
    return f"GPU memory grows by {size(grown)}/min."


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings: leaks first, then by growth, the fastest first."""
    return tuple(sorted(findings, key=lambda finding: (not finding.is_leak, -finding.bytes_per_minute)))


def rate_of(findings: Iterable[Finding]) -> float:
    """Growth of all findings together, in bytes a minute."""
    return sum(finding.bytes_per_minute for finding in findings)
