"""The trainers of `trainers/`, as `trainers.yml` describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

SCRIPTS = Path(__file__).with_name("trainers")
LEAK_MINUTES = 8.0  # from its start until it must be reported and named


@dataclass(frozen=True)
class Leak:
    """A leak that `--leak` switches on and that nothing declares to Heapwatch.

    Attributes:
        what: in words, for the table.
        names: a regular expression; an alert or an explanation that contains it has named the leak.
        rate: how fast, in words.

    """

    what: str
    names: str
    rate: str

    def named_in(self, text: str) -> bool:
        """Say whether a text names the leak."""
        return re.search(self.names, text) is not None


@dataclass(frozen=True)
class Trainer:
    """One trainer script.

    Attributes:
        name: of its script in `trainers/`.
        what: in words, for the table.
        watched: `snippet`, or the adapter's framework.
        ranks: processes that torchrun starts; 0 without torchrun.

    """

    name: str
    what: str
    watched: str
    leak: Leak
    ranks: int = 0

    @property
    def script(self) -> Path:
        """The script's path."""
        return SCRIPTS / f"{self.name}.py"

    @property
    def endpoints(self) -> int:
        """How many processes serve metrics."""
        return max(self.ranks, 1)


def _trainers() -> tuple[Trainer, ...]:
    described = yaml.safe_load(SCRIPTS.with_suffix(".yml").read_text(encoding="utf-8"))
    return tuple(Trainer(name=name, leak=Leak(**one.pop("leak")), **one) for name, one in described.items())


TRAINERS = _trainers()


def chosen(words: list[str]) -> list[Trainer]:
    """Trainers whose name contains one of `words`; all without words."""
    return [one for one in TRAINERS if any(word in one.name for word in words or [""])]
