"""The tables of `docs/systems`, and the check of each row."""

import re

from tests.documents import erl_trading, fire_dqn, metta_ppo, walker
from tests.documents.rows import Check
from tests.support.repository import REPOSITORY

SYSTEMS: dict[str, dict[str, Check]] = {
    "walker": walker.CHECKS,
    "erl_trading": erl_trading.CHECKS,
    "metta_ppo": metta_ppo.CHECKS,
    "fire_dqn": fire_dqn.CHECKS,
}
HEADING = "## Compared with the original\n"


def rows(system: str) -> list[str]:
    """What the original has, by the table of the system's page."""
    text = (REPOSITORY / "docs" / "systems" / f"{system}.md").read_text(encoding="utf-8")
    _, *found = re.findall(r"(?m)^\| (.+?) \| .+ \| .+ \|$", text.partition(HEADING)[2])
    return found
