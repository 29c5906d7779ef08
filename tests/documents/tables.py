"""The tables of `docs/systems`, from the tested rows: `python -m tests.documents.tables [--check]`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.documents import erl_trading, fire_dqn, metta_ppo, walker
from tests.documents.rows import Row
from tests.support.repository import REPOSITORY

SYSTEMS: dict[str, Sequence[Row]] = {
    "walker": walker.ROWS,
    "erl_trading": erl_trading.ROWS,
    "metta_ppo": metta_ppo.ROWS,
    "fire_dqn": fire_dqn.ROWS,
}
HEADING = "## Compared with the original\n"
INTRODUCTION = """
`make documents-test` tests each row on this example while it runs.

| the original | here | how to try it |
|---|---|---|
"""


def page(system: str) -> Path:
    """The page about a system."""
    return REPOSITORY / "docs" / "systems" / f"{system}.md"


def written(system: str) -> str:
    """The page with its table as the rows say."""
    lines = [f"| {row.has} | {row.here} | {row.attempt} |" for row in SYSTEMS[system]]
    text = page(system).read_text().partition(HEADING)[0].rstrip("\n")
    return f"{text}\n\n{HEADING}{INTRODUCTION}" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    stale = [system for system in SYSTEMS if written(system) != page(system).read_text()]
    if sys.argv[1:] == ["--check"]:
        sys.exit(f"stale: {', '.join(stale)}: `make generate`" if stale else 0)
    for system in stale:
        page(system).write_text(written(system))
