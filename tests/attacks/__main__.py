"""`python -m tests.attacks [WORD ...]`: try the attacks (with a word in their row); print what was said.

All of them together are written to docs/attacks.md.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path

from heapwatch_stack.binaries import find
from heapwatch_stack.settings import Settings
from tests.alerting.stage import stage
from tests.attacks import (
    clocks,
    containers,
    disclosures,
    files,
    impersonation,
    machines,
    networks,
    pages,
    stacks,
    trainers,
    upgrades,
    wrong_answers,
)
from tests.attacks.record import ATTACKS, Exchange, NotHere

DOCUMENT = Path(__file__).parents[2] / "docs" / "attacks.md"
SUITE = (
    *(impersonation, trainers, wrong_answers, disclosures, pages, networks, machines, stacks, files),
    *(clocks, containers, upgrades),
)


def put_programs_on_path() -> None:
    """Prometheus and Alertmanager of the stack, which are downloaded where they are missing."""
    found = find(Settings.from_environment(), print)
    folders = [str(binary.path.parent) for binary in (found.prometheus, found.alertmanager)]
    os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])


def document(said: list[str], summary: str) -> str:
    """The page with what was sent and what came back in a whole run."""
    return f"""# Tested attacks

Written by `make test-attacks` on {time.strftime("%Y-%m-%d")}, against real processes: {summary}.
Lines with `>` were sent, lines with `<` came back.
[SECURITY.md](https://github.com/heapwatch/heapwatch/blob/main/SECURITY.md) says what is defended.

{chr(10).join(said)}"""


def main(words: list[str]) -> int:
    chosen = [one for one in ATTACKS.values() if not words or any(word in one.row for word in words)]
    if not chosen:
        print(f"no attack has one of {words} in its row; there are: {', '.join(ATTACKS)}")
        return 2
    put_programs_on_path()
    results: dict[str, str] = {}
    said: list[str] = []
    with stage() as shared:
        for one in chosen:
            exchange, began = Exchange(), time.monotonic()
            try:
                one.run(shared, exchange)
                results[one.row] = "held"
            except NotHere as lacking:
                results[one.row] = f"NOT TRIED: {lacking}"
            except Exception:
                traceback.print_exc()
                results[one.row] = "FELL"
            title = f"{one.row}: {results[one.row]} ({time.monotonic() - began:.1f} s)"
            print("\n".join(["", title, *(f"  {line}" for line in exchange.lines)]), flush=True)
            said += [f"### {title}", "", "```text", *exchange.lines, "```", ""]
    print()
    for row, result in results.items():
        print(f"{result:<6} {row}")
    held = sum(result == "held" for result in results.values())
    summary = f"{len(results)} attacks, {held} held"
    print(summary)
    if not words:
        DOCUMENT.write_text(document(said, summary), encoding="utf-8")
    return 0 if held == len(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
