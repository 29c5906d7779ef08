"""Pictures for the README and the docs: `python -m docs.screenshots [--running [FROM]]`.

Without arguments they show six hours of made-up history of eight trainers whose names say what they do, in a
viewer that is started for them. With --running they show the running stack's dashboards
(HEAPWATCH_DASHBOARDS_PORT, 3009), their own time range or what is since FROM (`now-30m`).
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx
from PIL import Image
from playwright.sync_api import Browser, Locator, expect

from heapwatch.text.numbers import size
from tests.dashboards.backfill import build_tsdb
from tests.dashboards.browser import chromium, opened
from tests.dashboards.server import prometheus
from tests.dashboards.viewer.conftest import running_viewer

IMAGES = Path(__file__).with_name("images")
HEIGHT = 900
TRAINERS = "Trainers by verdict"


class Picture(NamedTuple):
    """One file: of which dashboard, and of the last trainer in Fleet with this verdict (None: of all)."""

    name: str
    board: str
    verdict: str | None = None
    theme: str = "dark"
    width: int = 1440


PICTURES = (
    Picture("fleet", "fleet"),
    Picture("trainer", "trainer", "leak"),
    Picture("trainer-healthy", "trainer", "healthy", theme="light"),
    Picture("trainer-narrow", "trainer", "leak", width=420),
)


def take(address: str, chosen: str) -> None:
    """Write `docs/images/*.png`: the first screen of the dashboards at `address`, these parameters added."""
    with chromium() as browser:
        trainers = _trainers(browser, address)
        for picture in PICTURES:
            if picture.verdict is not None and picture.verdict not in trainers:
                print(f"{picture.name}: no trainer is {picture.verdict}; the picture stays as it is")
                continue
            only = "" if picture.verdict is None else f"&var-instance={trainers[picture.verdict]}"
            page = browser.new_page(viewport={"width": picture.width, "height": HEIGHT})
            query = f"theme={picture.theme}&refresh={only}{chosen}"
            opened(page, f"{address}/d/heapwatch-{picture.board}?{query}")
            expect(page.locator("#popup")).to_be_hidden()  # of a lost connection
            save(page.screenshot(), IMAGES / f"{picture.name}.png")
            page.close()


def _trainers(browser: Browser, address: str) -> dict[str, str]:
    """Verdict to the last trainer that Fleet lists under it. Exits when there is no trainer."""
    page = opened(browser.new_page(), f"{address}/d/heapwatch-fleet?refresh=")
    rows = page.locator(f".panel:has(.panel-title :text-is('{TRAINERS}')) tbody tr").all()
    found = {row.locator("td").nth(1).inner_text(): _instance(row.locator("a").first) for row in rows}
    page.close()
    if not found:
        sys.exit("there is no trainer yet: start one first")
    return found


def _instance(link: Locator) -> str:
    """The address of the trainer that a link leads to."""
    return parse_qs(urlsplit(link.get_attribute("href") or "").query)["var-instance"][0]


def save(screenshot: bytes, file: Path, colours: int = 256) -> None:
    """Write it with a palette: it is a third of the size, and nobody sees it on flat panels."""
    file.parent.mkdir(exist_ok=True)
    image = Image.open(BytesIO(screenshot)).convert("RGB")
    image.quantize(colours, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(file, optimize=True)
    print(f"{file.relative_to(Path.cwd())}  {size(file.stat().st_size)}")


def running() -> str:
    """The address of the stack's dashboards; exits with 2 and one line when nothing answers there."""
    address = f"http://127.0.0.1:{os.environ.get('HEAPWATCH_DASHBOARDS_PORT', '3009')}"
    try:
        httpx.get(f"{address}/healthz", trust_env=False).raise_for_status()
    except httpx.HTTPError:
        print(f"no dashboards at {address}: `make up` first", file=sys.stderr)
        sys.exit(2)
    return address


@contextmanager
def history() -> Iterator[str]:
    """The address of a viewer of made-up history."""
    with tempfile.TemporaryDirectory() as folder:
        build_tsdb(Path(folder), hours=6)
        with prometheus(Path(folder)) as source, running_viewer(source) as address:
            yield address


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            with history() as made_up:
                take(made_up, "")
        case ["--running"]:
            take(running(), "")
        case ["--running", start] if start.startswith("now-"):
            take(running(), f"&from={start}&to=now")
        case unknown:
            sys.exit(f"{__doc__}\nunknown: {' '.join(unknown)}")
