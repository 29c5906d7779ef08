"""Every dashboard in the viewer, to be looked at: `python -m tests.dashboards.pictures FOLDER [WORD...]`.

Of made-up history: the pages about the whole stack once, the others of a leaking, a healthy, a young and an
ended trainer; dark and light, wide and narrow; each page in full length with its rows opened. With words only
the pictures whose names contain one of them (`trainer`, `young`, `light`, `420`).
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
LOOKS = (("dark", 1600), ("light", 1600), ("dark", 420), ("light", 420))


class Picture(NamedTuple):
    """One page in one look; of one trainer, or of all."""

    board: str
    trainer: str | None
    theme: str
    width: int

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return "-".join((self.board, self.trainer or "all", self.theme, str(self.width)))

    @property
    def query(self) -> str:
        """The page's parameters in its address."""
        only = "" if self.trainer is None else f"&var-instance={TRAINERS[self.trainer]}"
        return f"theme={self.theme}&refresh={only}"


def every() -> Iterator[Picture]:
    """All pictures."""
    pages = [(board, None) for board in OF_ALL] + [(board, one) for one in TRAINERS for board in OF_ONE]
    return (Picture(board, trainer, *look) for board, trainer in pages for look in LOOKS)


def take(folder: Path, words: list[str]) -> None:
    """Write the pictures whose names contain a word, or all, into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with history() as address, chromium() as browser:
        for picture in every():
            if words and not any(word in picture.name for word in words):
                continue
            page = browser.new_page(viewport={"width": picture.width, "height": 900})
            opened(page, f"{address}/d/heapwatch-{picture.board}?{picture.query}")
            unroll(page)
            stretch(page)
            page.screenshot(path=folder / f"{picture.name}.png")
            page.close()
            print(folder / f"{picture.name}.png", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    take(Path(sys.argv[1]), sys.argv[2:])
