"""Hours of Prometheus history in seconds, for tests and screenshots of the dashboards.

`build_tsdb(directory, hours=6)` fills a Prometheus data directory with the made-up trainers of
`scenarios.py` (healthy, leaking, filling, growing on a GPU, stalled), their recorded series, alerts and
cleanups, and the stack's own metrics. The history goes on for a while after now, so that a server started on
it does not run dry. `tests.dashboards.server.prometheus` starts one. The viewer's tests use both.
"""

import math
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from tests.dashboards.scenarios import SCENARIOS
from tests.dashboards.series import Clock, Series
from tests.support.programs import find

Scenario = Callable[[Clock], list[Series]]
STEP_SECONDS = 15
AHEAD_SECONDS = 1800
BLOCK = "24h"  # promtool reads the whole text once a block, of two hours by default


def build_tsdb(
    directory: Path,
    hours: float = 6,
    ahead_seconds: int = AHEAD_SECONDS,
    scenarios: Iterable[Scenario] = SCENARIOS,
) -> Clock:
    """Write blocks of history into `directory`, from `hours` before now until `ahead_seconds` after it.

    Raises RuntimeError when promtool refuses the data.
    """
    now = int(time.time()) // STEP_SECONDS * STEP_SECONDS
    clock = Clock(now - int(hours * 3600), now, now + ahead_seconds, STEP_SECONDS)
    directory.mkdir(parents=True, exist_ok=True)
    text = directory / "backfill.om"
    with text.open("w") as stream:
        write_openmetrics((series for scenario in scenarios for series in scenario(clock)), clock, stream)
    create_blocks(text, directory)
    text.unlink()
    return clock


def create_blocks(openmetrics: Path, directory: Path) -> None:
    """Make blocks of Prometheus of a text with timestamps. Raises as `build_tsdb` does."""
    command = [
        find("promtool"),
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        "--quiet",
        f"--max-block-duration={BLOCK}",
        openmetrics,
        directory,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"promtool refused the history: {done.stderr.strip()}")


def write_openmetrics(all_series: Iterable[Series], clock: Clock, stream: TextIO) -> None:
    """OpenMetrics text with a timestamp on every sample; what is None or NaN at a moment is absent then."""
    for series in all_series:
        labels = ",".join(f'{name}="{value}"' for name, value in series.labels.items())
        head = f"{series.name}{{{labels}}}"
        stream.writelines(
            f"{head} {value:.10g} {moment}\n"
            for moment, value in zip(clock.times, series.values, strict=True)
            if value is not None and not math.isnan(value)
        )
    stream.write("# EOF\n")
