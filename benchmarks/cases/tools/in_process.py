"""Tools that watch a script from a thread in its own process.

`python -m benchmarks.cases.tools.in_process TITLE SECONDS OUT SCRIPT` runs a script with one of them.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import sys
import threading
import time
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases.score import ToolFinding
from benchmarks.cases.tools.growth import SNAPSHOTS, least_bytes, steady

_FRAMES = 16
Reported = list[tuple[str | None, str | None]]  # a type, a place as `file:line`, or both


@dataclass(frozen=True)
class InProcessTool:
    """A tool that is imported by the script's process.

    Args:
        title: what it is called.
        rule: how its output is read, in words.
        report: what it reports about a script after so many seconds, most first.
        start: called before the script.

    """

    title: str
    rule: str
    report: Callable[[float, str], Reported]
    start: Callable[[], object] = lambda: None


def findings(reported: Iterable[tuple[str | None, str | None]]) -> tuple[ToolFinding, ...]:
    return tuple(ToolFinding(type=name, sites=(site(place),) if place else ()) for name, place in reported)


def site(name: str) -> tuple[str, int]:
    file, _, line = name.rpartition(":")
    return file, int(line)


def _grown(take: Callable[[], dict[str, float]], seconds: float, at_least: float) -> list[str]:
    """Names of what grew in each round of snapshots."""
    began, snapshots = time.monotonic(), []
    for share in SNAPSHOTS:
        time.sleep(max(0.0, began + share * seconds - time.monotonic()))
        snapshots.append(take())
    return [name for name, _ in steady(snapshots, at_least=at_least)]


def _tracemalloc(seconds: float, script: str) -> Reported:
    def by_line() -> dict[str, float]:
        held: Counter[str] = Counter()
        for statistic in tracemalloc.take_snapshot().statistics("traceback"):
            frames = list(statistic.traceback)  # the innermost is the last
            own = [frame for frame in frames if frame.filename == script]
            frame = (own or frames)[-1]
            held[f"{frame.filename}:{frame.lineno}"] += statistic.size
        return dict(held)

    return [(None, place) for place in _grown(by_line, seconds, least_bytes(seconds))]


def _objgraph(seconds: float, _script: str) -> Reported:
    import objgraph

    def by_number() -> dict[str, float]:
        gc.collect()
        counts: dict[str, float] = objgraph.typestats(shortnames=False)
        return counts

    return [(name, None) for name in _grown(by_number, seconds, 1)]


def _pympler(seconds: float, _script: str) -> Reported:
    from pympler import muppy, summary

    def by_bytes() -> dict[str, float]:
        return {str(name): float(size) for name, _, size in summary.summarize(muppy.get_objects())}

    return [(name, None) for name in _grown(by_bytes, seconds, least_bytes(seconds))]


IN_PROCESS = {
    tool.title: tool
    for tool in (
        InProcessTool(
            "tracemalloc",
            "snapshots with 16 frames; memory is charged to the innermost line of the trainer's own script, "
            "else to the innermost line",
            _tracemalloc,
            lambda: tracemalloc.start(_FRAMES),
        ),
        InProcessTool(
            "objgraph",
            "types whose instances grew in number; it reports no bytes, so one more each round is enough",
            _objgraph,
        ),
        InProcessTool("Pympler", "types whose instances grew in bytes", _pympler),
    )
}


def main() -> None:
    title, seconds, out, script = sys.argv[1:]
    sys.argv = [script]
    sys.path[0] = str(Path(script).parent)
    tool = IN_PROCESS[title]
    tool.start()
    threading.Thread(target=_watch, args=(tool, float(seconds), Path(out), script), daemon=True).start()
    runpy.run_path(script, run_name="__main__")


def _watch(tool: InProcessTool, seconds: float, out: Path, script: str) -> None:
    began = time.monotonic()
    try:
        out.write_text(json.dumps(tool.report(seconds, script)))
        status = 0
    except BaseException:
        traceback.print_exc()
        status = 1
    print(f"reported after {time.monotonic() - began:.0f} s", file=sys.stderr)
    os._exit(status)


if __name__ == "__main__":
    main()
