"""The tables of `docs/systems`, and the check of each row.

`python -m tests.documents.tables` writes the numbers that are tried into the pages.
"""

import re
import sys
from pathlib import Path

from docs.generated import write_or_check
from tests.documents import erl_trading, fire_dqn, limit_numbers, metta_ppo, walker, walker_numbers
from tests.documents.boundaries import Boundary, table
from tests.documents.rows import Check
from tests.support.repository import REPOSITORY

SYSTEMS: dict[str, dict[str, Check]] = {
    "walker": walker.CHECKS,
    "erl_trading": erl_trading.CHECKS,
    "metta_ppo": metta_ppo.CHECKS,
    "fire_dqn": fire_dqn.CHECKS,
}
NUMBERS: dict[str, list[Boundary]] = {
    "walker": walker_numbers.ALL,
    "erl_trading": limit_numbers.ERL,
    "metta_ppo": limit_numbers.METTA,
    "fire_dqn": limit_numbers.FIRE,
}
HEADING = "## Compared with the original\n"
NUMBERS_HEADING = "## The numbers of the original\n"


def page(system: str) -> Path:
    """The page of a system."""
    return REPOSITORY / "docs" / "systems" / f"{system}.md"


def rows(system: str) -> list[str]:
    """What the original has, by the table of the system's page."""
    text = page(system).read_text(encoding="utf-8")
    _, *found = re.findall(r"(?m)^\| (.+?) \| .+ \| .+ \|$", text.partition(HEADING)[2])
    return found


def with_numbers(system: str) -> str:
    """The page with the numbers of its document as they are tried, before the table of its rows."""
    text = page(system).read_text(encoding="utf-8")
    before, heading, after = text.partition(HEADING)
    before = before.partition(NUMBERS_HEADING)[0]
    about = "Messages one byte or item below each number, and at it. `make documents-test` checks them."
    return f"{before}{NUMBERS_HEADING}\n{about}\n\n{table(NUMBERS[system])}\n{heading}{after}"


if __name__ == "__main__":
    pages = {page(system): with_numbers(system) for system in NUMBERS}
    sys.exit(write_or_check("tests.documents.tables", pages))
