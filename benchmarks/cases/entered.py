"""`python -m benchmarks.cases.entered`: no comfort is given of a leak that is three seconds old.

Starts the script of each case, enters it after three seconds with `heapwatch explain PID`, and compares what
is said with the memory that was taken meanwhile. Exits with 1 if anything comforting is said of memory that
rose, or if the verdict is known later than twice, or sooner than half, of the time that was announced.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.cases.case import Case, load_all
from heapwatch.judge.component import MATERIAL_BYTES, MATERIAL_SHARE
from heapwatch.text.numbers import size

COMFORT = ("healthy", "warm-up", "filling")
YOUNG_SECONDS = 3.0
VISITS = 3  # one after the other, each until its first verdict
_KNOWN_IN = re.compile(r"known in (\d+) (s|min)")


class Visit(NamedTuple):
    """A visit: when it ended, in seconds of the script; what it said; resident memory before and after."""

    ended: float
    verdict: str
    message: str
    before: int
    after: int

    @property
    def is_wrong(self) -> bool:
        """Whether comfort was given of memory that rose."""
        least = max(2 * MATERIAL_BYTES, 2 * MATERIAL_SHARE * self.after)
        return self.verdict in COMFORT and self.after - self.before > least

    @property
    def known_in(self) -> float | None:
        """The announced seconds until it is known."""
        found = _KNOWN_IN.search(self.message)
        return None if found is None else float(found[1]) * (60 if found[2] == "min" else 1)


def visits(case: Case, folder: Path) -> list[Visit]:
    """What is said of the script of a case, until it is a leak."""
    script = case.write(folder, healthy=False)
    found: list[Visit] = []
    with subprocess.Popen(
        [sys.executable, str(script)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        began = time.monotonic()
        try:
            time.sleep(YOUNG_SECONDS)
            watched = psutil.Process(process.pid)
            while len(found) < VISITS and process.poll() is None:
                before = watched.memory_info().rss
                said = subprocess.run(
                    [sys.executable, "-m", "heapwatch", "explain", str(process.pid), "--json"],
                    capture_output=True,
                    text=True,
                    check=False,
                ).stdout
                document = json.loads(said) if said.startswith("{") else {"verdict": "", "message": said}
                after = watched.memory_info().rss if process.poll() is None else before
                ended = time.monotonic() - began
                found.append(Visit(ended, document["verdict"], document["message"], before, after))
                if document["verdict"] not in ("too early", *COMFORT):
                    break
        finally:
            process.kill()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cases.entered", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose name contains one of these")
    chosen = parser.parse_args()
    failed = 0
    for case in load_all():
        if not any(part in case.name for part in chosen.only):
            continue
        with tempfile.TemporaryDirectory(prefix="cases-") as folder:
            seen = visits(case, Path(folder))
        wrong = [visit for visit in seen if visit.is_wrong]
        for one, other in pairwise(seen):
            known = one.known_in
            if known is not None and other.verdict not in ("too early", *COMFORT):
                took = other.ended - one.ended
                wrong += [one] if not known / 2 <= took <= 2 * known else []
        failed += bool(wrong)
        print(f"{case.name}: {'WRONG' if wrong else 'right'}", flush=True)
        for visit in seen:
            grown = size(visit.after - visit.before)
            print(f"  {visit.ended:.0f} s, +{grown}: {visit.verdict}: {visit.message[:160]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
