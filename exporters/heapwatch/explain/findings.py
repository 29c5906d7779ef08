"""Findings and explanations: as data, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from heapwatch.explain.sites import Site

FindingKind = Literal["container", "type", "buffer", "native", "allocator", "gpu", "worker"]
Verdict = Literal["healthy", "warm-up", "filling", "leak", "too early"]

_HOW_TO_READ = (
    "Another thread may have been changing them; `watch.step()` in the training thread lets them be read"
)


@dataclass(frozen=True)
class Finding:
    """Something that grows.

    Attributes:
        kind: the sort of thing that grows.
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
        steady: whether it has grown at an even pace for minutes, which a filling cache does not.
        inferred: whether its bytes are growth that nothing else explains, and are not measured.

    """

    kind: FindingKind
    path: str | None
    type: str
    items: int | None
    bytes: int | None
    items_per_minute: float | None
    bytes_per_minute: float
    share: float
    capacity_items: int | None = None
    site: Site | None = None
    holders: tuple[str, ...] = ()
    remedy: str | None = None
    is_leak: bool = False
    steady: bool = False
    inferred: bool = False

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
        unread: what could not be read the last time, since another thread might have been changing it.

    """

    verdict: Verdict
    seconds: float
    growth_bytes_per_minute: float
    explained_share: float
    findings: tuple[Finding, ...] = ()
    detail: str = ""
    unread: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The JSON document of `GET /explain`."""
        return {
            "verdict": self.verdict,
            "message": message(self),
            "detail": self.detail,
            "seconds": round(self.seconds, 1),
            "growth_bytes_per_minute": round(self.growth_bytes_per_minute),
            "explained_share": round(self.explained_share, 3),
            "findings": [finding.as_json() for finding in self.findings],
            "unread": list(self.unread),
        }


def from_json(document: Any) -> Explanation:
    """Read an explanation that `as_json` made.

    Raises:
        ValueError: a field is missing or has a wrong type.

    """
    try:
        fields = Finding.__dataclass_fields__
        findings = []
        for found in document["findings"]:
            values = {name: value for name, value in found.items() if name in fields}
            site = values.get("site")
            values["site"] = None if site is None else Site(**site)
            values["holders"] = tuple(values.get("holders") or ())
            findings.append(Finding(**values))
        return Explanation(
            document["verdict"],
            float(document["seconds"]),
            float(document["growth_bytes_per_minute"]),
            float(document["explained_share"]),
            tuple(findings),
            str(document.get("detail", "")),
            tuple(map(str, document.get("unread") or ())),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a field is missing or has a wrong type: {error}") from None


def narrative(explanation: Explanation) -> str:
    """The message, then one line for each further finding."""
    shown = _shown(explanation)
    rest = [finding for finding in explanation.findings if finding is not shown]
    lines = [f"{explanation.verdict}: {message(explanation)}", *(f"  {described(found)}" for found in rest)]
    if explanation.unread:
        lines.append(f"  Not read: {' and '.join(explanation.unread)}. {_HOW_TO_READ}.")
    return "\n".join(lines)


def _shown(explanation: Explanation) -> Finding | None:
    leaks = (finding for finding in explanation.findings if finding.is_leak)
    return next(leaks, next(iter(explanation.findings), None))


def message(explanation: Explanation) -> str:
    """The explanation in one line."""
    pace = f"{size_text(explanation.growth_bytes_per_minute)}/min"
    first = _shown(explanation)
    if explanation.verdict == "too early":
        return f"Too early to tell after {_duration(explanation.seconds)}. {explanation.detail}".strip()
    if explanation.verdict == "healthy":
        return f"Nothing leaks. {explanation.detail}".strip()
    if explanation.verdict == "warm-up" or first is None:
        return f"No leak. Memory grew by {pace} and slows down: a warm-up. {explanation.detail}".strip()
    if explanation.verdict == "filling":
        return f"Memory grows by {pace}. {_filling(explanation)} {explanation.detail}".strip()
    return f"Memory grows by {pace}. {described(first)}"


def described(finding: Finding) -> str:
    """A finding in one or two sentences."""
    share = f"{finding.share:.0%} of it is " if finding.share >= 0.005 else "Part of it is "
    what = f"`{finding.path}`" if finding.path else finding.type
    facts = [finding.type] if finding.path else []
    if finding.items_per_minute:
        facts.append(f"{finding.items_per_minute:+,.0f} items/min")
    if finding.items and finding.bytes:
        facts.append(f"{size_text(finding.bytes / finding.items)} each")
    elif finding.bytes:
        facts.append(f"{size_text(finding.bytes)} now")
    if finding.path:
        facts.append("no bound" if finding.capacity_items is None else f"bound {finding.capacity_items:,}")
    text = f"{share}{what}" + (f" ({', '.join(facts)})" if facts else "")
    if finding.site is not None:
        file = finding.site.file.replace("\\", "/").rpartition("/")[2]
        text += f", filled at {file}:{finding.site.line} in `{finding.site.function}`"
    text += "."
    if finding.remedy:
        text += f" Suggested: {finding.remedy}."
    return text


def _filling(explanation: Explanation) -> str:
    buffers = [finding for finding in explanation.findings if finding.kind == "buffer"]
    growing = (one for one in buffers if (one.items or 0) < (one.capacity_items or 0))
    finding = next(growing, explanation.findings[0])
    capacity = finding.capacity_items
    if not (capacity and finding.items and finding.bytes):
        return described(finding)
    full = finding.bytes / finding.items * capacity
    return (
        f"`{finding.path}` is filling: {finding.items:,} of {capacity:,} items; "
        f"it will hold {size_text(full)} when full."
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def size_text(nbytes: float) -> str:
    """Bytes with a decimal unit."""
    value = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings: leaks first, then by growth, the fastest first."""
    return tuple(sorted(findings, key=lambda found: (not found.is_leak, -found.bytes_per_minute)))
