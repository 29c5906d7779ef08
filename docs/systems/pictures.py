"""Pictures of the examples' runs for these pages, into docs/images/systems.

`python -m docs.systems.pictures world RECORDING.json.gz NAME` takes the bodies by type, from the World
dashboard, of a run that `python -m examples.check --keep FOLDER` recorded: a minute there was four seconds.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.leaks.scenario import Scenario, load
from docs.screenshots import IMAGES, save
from tests.dashboards.backfill import create_blocks
from tests.dashboards.browser import chromium, opened, stretch
from tests.dashboards.server import prometheus
from tests.dashboards.viewer.conftest import running_viewer

SYSTEMS = IMAGES / "systems"
COLOURS = 128


def world(recording: Path, name: str) -> None:
    """The bodies by type of a replayed run."""
    scenario = load(recording)
    with (
        tempfile.TemporaryDirectory() as folder,
        history(scenario, Path(folder)) as source,
        running_viewer(source) as address,
        chromium() as browser,
    ):
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        minutes = scenario.scrapes * scenario.scrape_seconds // 60
        query = f"theme=dark&refresh=&from=now-{minutes}m&to=now"
        stretch(opened(page, f"{address}/d/heapwatch-world?{query}"))
        panel = page.locator(".panel", has_text="Bodies by type").first
        save(panel.screenshot(), SYSTEMS / f"{name}.png", COLOURS)


@contextmanager
def history(scenario: Scenario, folder: Path) -> Iterator[str]:
    """The URL of a Prometheus that has the scenario as what it scraped until now."""
    first = int(time.time()) - scenario.scrapes * scenario.scrape_seconds
    lines = []
    for name, own, values in scenario.parsed():
        labels = {"job": "trainer", "instance": "127.0.0.1:7777", **own}
        joined = ",".join(f'{label}="{value}"' for label, value in labels.items())
        lines += [
            f"{name}{{{joined}}} {value!r} {first + index * scenario.scrape_seconds}"
            for index, value in enumerate(values)
            if value is not None
        ]
    text_file = folder / "history.om"
    text_file.write_text("\n".join([*lines, "# EOF\n"]))
    create_blocks(text_file, folder / "data")
    with prometheus(folder / "data") as url:
        yield url


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["world", recording, name]:
            world(Path(recording), name)
        case _:
            sys.exit(__doc__)
