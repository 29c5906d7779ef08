"""Pictures of every dashboard for the README and the docs: `python -m docs.screenshots [--history]`.

Takes the running stack's dashboards (HEAPWATCH_DASHBOARDS_PORT, 3009), or with --history a viewer of made-up
history that it starts itself: six hours of five trainers, two of which leak.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import ViewportSize

from tests.dashboards.backfill import build_tsdb
from tests.dashboards.browser import chromium, opened, stretch
from tests.dashboards.server import prometheus
from tests.dashboards.viewer.conftest import start_viewer

IMAGES = Path(__file__).with_name("images")
BOARDS = ("fleet", "trainer", "world", "buffers", "phases", "gpu", "alerts", "stack")
SIZE: ViewportSize = {"width": 1400, "height": 900}


def take(address: str) -> None:
    """Write `docs/images/<dashboard>.png` of every dashboard at `address`."""
    IMAGES.mkdir(exist_ok=True)
    with chromium() as browser:
        for board in BOARDS:
            page = browser.new_page(viewport=SIZE)
            stretch(opened(page, f"{address}/d/heapwatch-{board}?theme=dark&refresh=", timeout=120))
            file = IMAGES / f"{board}.png"
            picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
            # A palette of 256 colours is a third of the size, and nobody sees it on flat panels.
            picture.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
                file, optimize=True
            )
            print(f"{file.relative_to(Path.cwd())}  {file.stat().st_size / 1000:.0f} kB")
            page.close()


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
    if sys.argv[1:] == ["--history"]:
        with history() as made_up:
            take(made_up)
    elif not sys.argv[1:]:
        take(running())
    else:
        sys.exit(f"{__doc__}\nunknown: {' '.join(sys.argv[1:])}")
