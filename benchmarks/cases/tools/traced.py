"""Lines that grow, by tracemalloc, read from a thread in the script's own process.

`python -m benchmarks.cases.tools.traced SECONDS OUT SCRIPT` runs a script and writes what it found.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import threading
import time
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

# When snapshots are taken, as shares of the time; before the first, everything is warm-up.
SNAPSHOTS = (0.4, 0.6, 0.8, 1.0)
BYTES_PER_MINUTE = 1e6
_FRAMES = 16
Line = tuple[str, int]  # file and number


def steady(snapshots: Sequence[Mapping[Line, int]], *, at_least: float) -> list[Line]:
    """Lines that grew in every round and by `at_least` bytes altogether, most first."""
    grown = {
        line: snapshots[-1][line] - snapshots[0].get(line, 0)
        for line in snapshots[-1]
        if all(after.get(line, 0) > before.get(line, 0) for before, after in pairwise(snapshots))
    }
    enough = [line for line, growth in grown.items() if growth >= at_least]
    return sorted(enough, key=lambda line: -grown[line])


def _by_line(script: str) -> Counter[Line]:
    """Bytes by the innermost line of the script, else by the innermost line."""
    held: Counter[Line] = Counter()
    for statistic in tracemalloc.take_snapshot().statistics("traceback"):
        frames = list(statistic.traceback)  # the innermost is the last
        own = [frame for frame in frames if frame.filename == script]
        frame = (own or frames)[-1]
        held[frame.filename, frame.lineno] += statistic.size
    return held


def _watch(seconds: float, out: Path, script: str) -> None:
    began, snapshots = time.monotonic(), []
    try:
        for share in SNAPSHOTS:
            time.sleep(max(0.0, began + share * seconds - time.monotonic()))
            snapshots.append(_by_line(script))
        least = BYTES_PER_MINUTE * seconds * (SNAPSHOTS[-1] - SNAPSHOTS[0]) / 60
        out.write_text(json.dumps(steady(snapshots, at_least=least)))
        status = 0
    except BaseException:
        traceback.print_exc()
        status = 1
    os._exit(status)


def main() -> None:
    seconds, out, script = sys.argv[1:]
    sys.argv = [script]
    sys.path[0] = str(Path(script).parent)
    tracemalloc.start(_FRAMES)
    threading.Thread(target=_watch, args=(float(seconds), Path(out), script), daemon=True).start()
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
