"""A cleanup that gave back memory: what grew until then, and whether memory has grown since."""

from __future__ import annotations

from dataclasses import dataclass

from heapwatch.explain.findings import Explanation, foremost
from heapwatch.judge.component import MATERIAL_BYTES, MATERIAL_SHARE
from heapwatch.judge.verdict import Word
from heapwatch.text.numbers import duration, size

_TOLD_SECONDS = 900.0  # as long as the judge holds a leak
_SINCE_SECONDS = 10.0  # before which it is not said that memory stands still
_GREW: tuple[Word, ...] = ("too early", "growing", "will not fit", "leak")


def matters(nbytes: float, resident: float) -> bool:
    """Whether so many bytes are material for a process with this resident memory."""
    return nbytes >= max(MATERIAL_BYTES, MATERIAL_SHARE * resident)


@dataclass(frozen=True)
class Cleaned:
    """A cleanup.

    Attributes:
        action: `regular` or `emergency`.
        at: when it ended, in seconds of the explainer's clock.
        freed: resident bytes that it gave back.
        left: resident bytes after it.
        before: the explanation of just before it.

    """

    action: str
    at: float
    freed: float
    left: float
    before: Explanation

    def text(self, now: float, resident: float) -> str:
        """Sentences about it and the time since, by the resident bytes of now; none once it is long ago."""
        ago = now - self.at
        if ago > _TOLD_SECONDS:
            return ""
        article = "An" if self.action == "emergency" else "A"
        said = [f"{article} {self.action} cleanup freed {size(self.freed)} {duration(ago)} ago."]
        rate, first = self.before.growth_bytes_per_minute, foremost(self.before)
        if self.before.verdict in _GREW and matters(60 * rate, self.left):
            name = first and (f"`{first.path}`" if first.path else first.type)
            said.append(
                f"Until then memory grew by {size(rate)}/min" + (f", most of it {name}." if name else ".")
            )
        grown = resident - self.left
        if grown >= MATERIAL_BYTES:
            said.append(f"Since then memory has grown by {size(grown)}.")
        elif ago >= _SINCE_SECONDS:
            said.append("Since then memory has not grown.")
        return " ".join(said)
