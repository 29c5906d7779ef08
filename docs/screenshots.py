"""Pictures of every dashboard for the README and the docs: `python -m docs.screenshots [--history | FROM]`.

Takes the last half hour, or what is since FROM (`now-1h`), of the running stack's dashboards
(HEAPWATCH_DASHBOARDS_PORT, 3009). With --history, of a viewer of made-up history that it starts itself: six
hours of five trainers, two of which leak. Where no trainer has a GPU, that picture stays as it is.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import httpx
from PIL import Image
from playwright.sync_api import Browser, expect

from tests.dashboards.backfill import build_tsdb
from tests.dashboards.browser import chromium, opened, stretch
from tests.dashboards.server import prometheus
from tests.dashboards.viewer.conftest import start_viewer

IMAGES = Path(__file__).with_name("images")
BOARDS = ("fleet", "trainer", "world", "buffers", "phases", "gpu", "alerts", "stack")
HEIGHT = 900
TRAINERS = "Trainers by verdict"


class Picture(NamedTuple):
    """One file: of which dashboard, how wide in pixels, and of which row of Fleet's table (None: of all)."""

    name: str
    board: str
    row: int | None = None
    width: int = 1400
    theme: str = "dark"


WORST, BEST = 0, -1
PICTURES = (
    *(Picture(board, board, None if board in ("fleet", "alerts", "stack") else WORST) for board in BOARDS),
    Picture("fleet-light", "fleet", theme="light"),
    Picture("fleet-narrow", "fleet", width=800),
    Picture("trainer-healthy", "trainer", BEST),
    Picture("trainer-narrow", "trainer", WORST, width=800, theme="light"),
)


def take(address: str, chosen: str) -> None:
    """Write `docs/images/*.png` of the dashboards at `address`, with these parameters in their addresses."""
    IMAGES.mkdir(exist_ok=True)
    with chromium() as browser:
        instances = _instances(browser, address)
        for picture in PICTURES:
            page = browser.new_page(viewport={"width": picture.width, "height": HEIGHT})
            only = "" if picture.row is None else f"&var-instance={instances[picture.row]}"
            query = f"theme={picture.theme}&refresh={only}{chosen}"
            stretch(opened(page, f"{address}/d/heapwatch-{picture.board}?{query}", timeout=120))
            expect(page.locator("#popup")).to_be_hidden(timeout=60_000)  # of a lost connection
            if page.locator(".plot:visible").count():
                _write(picture, page.screenshot())
            else:
                print(f"{picture.name}: there is nothing to see; the picture stays as it is")
            page.close()


def _instances(browser: Browser, address: str) -> list[str]:
    """The trainers as Fleet lists them, the worst first."""
    page = opened(browser.new_page(), f"{address}/d/heapwatch-fleet?refresh=", timeout=120)
    rows = page.locator(f".panel:has(.panel-title :text-is('{TRAINERS}')) tbody tr")
    found = rows.locator("a").all_inner_texts()
    page.close()
    if not found:
        sys.exit("there is no trainer yet: start one first")
    return found


def _write(picture: Picture, screenshot: bytes) -> None:
    file = IMAGES / f"{picture.name}.png"
    image = Image.open(BytesIO(screenshot)).convert("RGB")
    # A palette of 256 colours is a third of the size, and nobody sees it on flat panels.
    image.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(file, optimize=True)
    print(f"{file.relative_to(Path.cwd())}  {file.stat().st_size / 1000:.0f} kB")


def running() -> str:
    """The address of the stack's dashboards; exits with 2 and one line when nothing answers there."""
    address = f"http://127.0.0.1:{os.environ.get('HEAPWATCH_DASHBOARDS_PORT', '3009')}"
    try:
        httpx.get(f"{address}/healthz", trust_env=False).raise_for_status()
    except httpx.HTTPError:
        print(f"no dashboards at {address}: `make up` first, or ARGS=--history", file=sys.stderr)
        sys.exit(2)
    return address


@contextmanager
def history() -> Iterator[str]:
    """The address of a viewer of made-up history."""
    with tempfile.TemporaryDirectory() as folder:
        build_tsdb(Path(folder), hours=6)
        with prometheus(Path(folder)) as source:
            process, address = start_viewer(source)
            try:
                yield address
            finally:
                process.terminate()
                process.wait(timeout=20)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--history"]:
            with history() as made_up:
                take(made_up, "")
        case []:
            take(running(), "&from=now-30m&to=now")
        case [start] if start.startswith("now-"):
            take(running(), f"&from={start}&to=now")
        case unknown:
            sys.exit(f"{__doc__}\nunknown: {' '.join(unknown)}")
