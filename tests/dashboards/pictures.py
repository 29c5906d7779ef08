"""Every dashboard in the viewer, to be looked at: `python -m tests.dashboards.pictures FOLDER [WORD...]`.

Of made-up history: the pages about the whole stack, the others of five trainers; in full length with their
rows opened; dark and wide, on a tablet, light and narrow. With words only the pictures whose names contain
one of them (`trainer`, `young`, `420`).
"""

import sys
from itertools import product
from pathlib import Path

from docs.screenshots import history
from tests.dashboards.browser import chromium, opened, stretch, unroll

TRAINERS = {
    "leaking": "walker-leaking:7777",
    "growing": "ppo-growing:7777",
    "healthy": "walker-healthy:7777",
    "young": "walker-young:7777",
    "ended": "dqn-ended:7777",
}
OF_ALL = ("fleet", "alerts", "stack")
OF_ONE = ("trainer", "world", "buffers", "phases", "gpu", "alerts")
LOOKS = {1600: "dark", 900: "dark", 420: "light"}


def take(folder: Path, words: list[str]) -> None:
    """Write the pictures whose names contain a word, or all, into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = [*product(OF_ALL, ["all"]), *product(OF_ONE, TRAINERS)]
    with history() as address, chromium() as browser:
        for (board, trainer), (width, theme) in product(pages, LOOKS.items()):
            name = f"{board}-{trainer}-{width}"
            if words and not any(word in name for word in words):
                continue
            only = f"&var-instance={TRAINERS[trainer]}" if trainer in TRAINERS else ""
            page = browser.new_page(viewport={"width": width, "height": 900})
            opened(page, f"{address}/d/heapwatch-{board}?theme={theme}&refresh={only}")
            unroll(page)
            stretch(page)
            page.screenshot(path=folder / f"{name}.png")
            page.close()
            print(folder / f"{name}.png", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    take(Path(sys.argv[1]), sys.argv[2:])
