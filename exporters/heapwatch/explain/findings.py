"""What was found, as data and in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from heapwatch.explain.sites import Site

FindingKind = Literal["container", "type", "buffer", "native", "allocator", "gpu", "worker"]
Verdict = Literal["healthy", "warm-up", "filling", "leak", "too early"]


@dataclass(frozen=True)
class Finding:
    """Something that grows.

    Attributes:
        kind: what it is.
        path: its holder, from the root; None when nothing in Python holds it.
        type: of the container and its items, in words.
        items: how many it holds; None where that is not counted.
        bytes: what it holds.
        items_per_minute: growth.
        bytes_per_minute: growth.
        share: of the process's growth, 0 to 1.
        capacity_items: where it ends; None where it has no end.
        site: where it grows; None where that is not known.
        holders: what holds it, the nearest first.
        remedy: what to do; None where none is known.
        is_leak: whether it grows without end and matters.
        steady: whether it has kept its pace for minutes, which a cache that fills does not.
        inferred: whether the bytes come from growth that nothing else explains, not from measuring.

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
    """The state of a process: a verdict, and what grows, the most first."""

    verdict: Verdict
    seconds: float
    growth_bytes_per_minute: float
    explained_share: float
    findings: tuple[Finding, ...] = ()
    detail: str = ""

    def as_json(self) -> dict[str, Any]:
        """The document that `GET /explain` answers."""
        return {
            "verdict": self.verdict,
            "message": message(self),
            "detail": self.detail,
            "seconds": round(self.seconds, 1),
            "growth_bytes_per_minute": round(self.growth_bytes_per_minute),
            "explained_share": round(self.explained_share, 3),
            "findings": [finding.as_json() for finding in self.findings],
        }


def from_json(document: Any) -> Explanation:
    """The explanation that `as_json` wrote.

    Raises:
        ValueError: it is none.

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
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks something: {error}") from None


def narrative(explanation: Explanation) -> str:
    """The message, and a line for each further finding."""
    shown = _shown(explanation)
    rest = [finding for finding in explanation.findings if finding is not shown]
    return "\n".join(
        [f"{explanation.verdict}: {message(explanation)}", *(f"  {described(found)}" for found in rest)]
    )


def _shown(explanation: Explanation) -> Finding | None:
    leaks = (finding for finding in explanation.findings if finding.is_leak)
    return next(leaks, next(iter(explanation.findings), None))


def message(explanation: Explanation) -> str:
    """One line for a person."""
    pace = f"{size_text(explanation.growth_bytes_per_minute)}/min"
    first = _shown(explanation)
    if explanation.verdict == "too early":
        return f"Too early to tell after {_duration(explanation.seconds)}. {explanation.detail}".strip()
    if explanation.verdict == "healthy":
        return f"Nothing leaks. {explanation.detail}".strip()
    if explanation.verdict == "warm-up" or first is None:
        return f"No leak. Memory grew by {pace}, and slows down: a warm-up. {explanation.detail}".strip()
    if explanation.verdict == "filling":
        return f"Memory grows by {pace}. {_filling(explanation)} {explanation.detail}".strip()
    return f"Memory grows by {pace}. {described(first)}"


def described(finding: Finding) -> str:
    """A finding as a sentence or two."""
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
    """The most important first: leaks before the rest, then by growth."""
    return tuple(sorted(findings, key=lambda found: (not found.is_leak, -found.bytes_per_minute)))
