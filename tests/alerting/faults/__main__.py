"""`python -m tests.alerting.faults [WORD ...]`: try the faults (with a word in their name); print a table.

All of them together are written to docs/faults.md.
"""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

from tests.alerting.faults import (
    alertmanagers,
    clients,
    clocks,
    crashes,
    databases,
    floods,
    out_of_memory,
    prometheuses,
    trainers,
)
from tests.alerting.faults.stage import FAULTS, Outcome, put_programs_on_path, stage

DOCUMENT = Path(__file__).parents[3] / "docs" / "faults.md"
SUITE = (crashes, trainers, alertmanagers, prometheuses, databases, clocks, clients, floods, out_of_memory)
LINE = "{:<52} {:>5} {:>5} {:>8} {:>11}  {}"


def document(rows: list[str], summary: str) -> str:
    """The page with the table of a whole run."""
    return f"""# Tested faults

Written by `make test-faults` on {time.strftime("%Y-%m-%d")}: a real Prometheus, Alertmanager and receiver,
and trainers with a fault between alert and cleanup. *Tried* counts cleanups that were due. *Lost* were not
done, *doubled* were done twice. Both must be 0. *Recovery* is the time in seconds from the end of the fault
until all cleanups were done.

| fault | tried | lost | doubled | recovery, s | note |
|---|---|---|---|---|---|
{chr(10).join(rows)}

{summary}.
"""


def main(words: list[str]) -> int:
    chosen = {name: test for name, test in FAULTS.items() if not words or any(word in name for word in words)}
    if not chosen:
        print(f"no fault has one of {words} in its name; there are: {', '.join(FAULTS)}")
        return 2
    put_programs_on_path()
    failed = 0
    rows: list[str] = []
    begin = time.monotonic()
    print(LINE.format("fault", "tried", "lost", "doubled", "recovery s", ""))
    with stage() as shared:
        for name, test in chosen.items():
            outcome = Outcome()
            try:
                test(shared, outcome)
            except Exception:
                traceback.print_exc()
                outcome.note = "FAILED " + outcome.note
            shared.clear()
            if outcome.note.startswith("FAILED") or outcome.lost or outcome.doubled or not outcome.tried:
                failed += 1
            slowest = f"{max(outcome.recoveries):.1f}" if outcome.recoveries else "-"
            row = (name, str(outcome.tried), str(outcome.lost), str(outcome.doubled), slowest, outcome.note)
            print(LINE.format(*row), flush=True)
            rows.append(f"| {' | '.join(row)} |")
    seconds = time.monotonic() - begin
    summary = f"{len(chosen)} faults, {failed} failed, {seconds:.0f} s; recovery: the slowest of all tries"
    print(summary)
    if not words:
        DOCUMENT.write_text(document(rows, summary), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
