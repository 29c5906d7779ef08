"""`python -m tests.alerting.faults [WORD ...]`: try the faults (with a word in their name); print a table."""

from __future__ import annotations

import os
import sys
import time
import traceback

from heapwatch.stack.binaries import find
from heapwatch.stack.settings import Settings
from tests.alerting.faults import (
    alertmanagers,
    clients,
    clocks,
    crashes,
    databases,
    floods,
    prometheuses,
    trainers,
)
from tests.alerting.faults.stage import FAULTS, Outcome, stage

SUITE = (crashes, trainers, alertmanagers, prometheuses, databases, clocks, clients, floods)
LINE = "{:<52} {:>5} {:>5} {:>8} {:>11}  {}"


def main(words: list[str]) -> int:
    chosen = {name: test for name, test in FAULTS.items() if not words or any(word in name for word in words)}
    if not chosen:
        print(f"no fault has one of {words} in its name; there are: {', '.join(FAULTS)}")
        return 2
    found = find(Settings.from_environment(), print)
    folders = [str(binary.path.parent) for binary in (found.prometheus, found.alertmanager)]
    os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])
    failed = 0
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
            if outcome.note.startswith("FAILED") or outcome.lost or outcome.doubled or not outcome.tried:
                failed += 1
            slowest = f"{max(outcome.recoveries):.1f}" if outcome.recoveries else "-"
            print(
                LINE.format(name, outcome.tried, outcome.lost, outcome.doubled, slowest, outcome.note),
                flush=True,
            )
    seconds = time.monotonic() - begin
    print(f"{len(chosen)} faults, {failed} failed, {seconds:.0f} s; recovery: the slowest of the tries")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
