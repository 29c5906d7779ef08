"""What the built-in viewer costs: `python -m benchmarks.viewer` (Chromium and Prometheus on this machine).

It opens every dashboard over six hours of history, and measures how long a page takes from its address to its
last panel, and from the arrival of its last data to the last panel on screen. Then it leaves over 30 panels
open, refreshing every 30 seconds, and measures the share of a core that the viewer's server uses. Last, it
opens and closes one page after another, and prints the memory of the server on the way.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, Page

from tests.dashboards.backfill import build_tsdb
from tests.dashboards.browser import UNSETTLED, chromium
from tests.dashboards.server import prometheus
from tests.dashboards.viewer.conftest import start_viewer

UIDS = ("fleet", "trainer", "world", "buffers", "phases", "alerts", "stack")
ROUNDS = 3
WATCH_SECONDS = 60
VISITS, VISITS_A_LINE = 50, 10
# Installed before the page's own scripts: notes when data came over the socket last.
PROBE = """
    window.arrived = 0;
    const Socket = window.WebSocket;
    window.WebSocket = class extends Socket {
        constructor(...given) {
            super(...given);
            this.addEventListener('message', (event) => {
                if (event.data.length > 1000) window.arrived = performance.now();
            });
        }
    };
"""
# Once every panel has its data and those in the window are drawn.
DRAWN = f"""() => {{
    if (({UNSETTLED})().length) return false;
    const panels = [...document.querySelectorAll('.panel')].filter((panel) => panel.offsetParent).length;
    return {{ panels, now: performance.now(), arrived: window.arrived }};
}}"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        build_tsdb(Path(folder), hours=6)
        with prometheus(Path(folder)) as source, chromium() as browser:
            process, address = start_viewer(source)
            try:
                measure_pages(browser, address)
                measure_server(browser, address, psutil.Process(process.pid))
                measure_memory(browser, address, psutil.Process(process.pid))
            finally:
                process.terminate()
                process.wait(timeout=20)


def opened(browser: Browser, address: str, uid: str, refresh: str = "") -> tuple[Page, dict[str, Any]]:
    """A dashboard over six hours, and what was seen once all of it was drawn."""
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    page.add_init_script(PROBE)
    page.goto(f"{address}/d/heapwatch-{uid}?from=now-6h&to=now&refresh={refresh}")
    seen: dict[str, Any] = page.wait_for_function(DRAWN, timeout=60_000).json_value()
    return page, seen


def measure_pages(browser: Browser, address: str) -> None:
    """From address to last panel, and from last data to last panel, in seconds (medians)."""
    print(f"{'dashboard':<12}{'panels':>8}{'whole page':>12}{'after data':>12}")
    for uid in UIDS:
        whole, after, panels = [], [], 0
        for _ in range(ROUNDS):
            page, seen = opened(browser, address, uid)
            whole.append(seen["now"] / 1000)
            after.append(max(seen["now"] - seen["arrived"], 0) / 1000)
            panels = seen["panels"]
            page.close()
        print(f"{uid:<12}{panels:>8}{statistics.median(whole):>10.2f} s{statistics.median(after):>10.2f} s")


def measure_server(browser: Browser, address: str, server: psutil.Process) -> None:
    """The viewer's share of a core while dashboards are open and refresh every 30 seconds."""
    open_pages = [opened(browser, address, uid, "30s") for uid in ("trainer", "world", "stack")]
    panels = sum(seen["panels"] for _, seen in open_pages)
    before, started = sum(server.cpu_times()[:2]), time.monotonic()
    open_pages[0][0].wait_for_timeout(WATCH_SECONDS * 1000)
    share = (sum(server.cpu_times()[:2]) - before) / (time.monotonic() - started)
    print(f"\n{panels} open panels over 6 hours, refreshing every 30 s: {share:.3f} of a core")
    for page, _ in open_pages:
        page.close()


def measure_memory(browser: Browser, address: str, server: psutil.Process) -> None:
    """The viewer's resident memory while pages are opened and closed."""
    print(f"\n{'visits':<12}{'resident':>12}")
    for visit in range(1, VISITS + 1):
        page, _ = opened(browser, address, "trainer")
        page.close()
        if visit % VISITS_A_LINE == 0:
            print(f"{visit:<12}{server.memory_info().rss / 1e6:>9.1f} MB", flush=True)


if __name__ == "__main__":
    main()
