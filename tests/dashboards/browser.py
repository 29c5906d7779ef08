"""Chromium without a window, and what it means that a dashboard is on screen."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from playwright.sync_api import Browser, Page, TimeoutError, expect, sync_playwright

from tests.support.programs import find

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
# For a page's many queries on a busy machine; nothing is asserted about the time.
PATIENCE_MILLISECONDS = 60_000
UNSETTLED = """() => {
    const inSight = (element) => {
        const {top, bottom} = element.getBoundingClientRect();
        return top < window.innerHeight && bottom > 0;
    };
    const drawn = (plot) => !inSight(plot) || plot.querySelector('canvas');
    const panels = [...document.querySelectorAll('.panel')].filter((panel) => panel.offsetParent);
    const done = (panel) => panel.querySelector('.panel-error')?.offsetParent || (
        panel.querySelector('.panel-body > div')?.childElementCount > 0
        && [...panel.querySelectorAll('.plot')].every(drawn));
    if (panels.length === 0) return ['no panel yet'];
    const late = panels.filter((panel) => !done(panel));
    return late.map((panel) => panel.querySelector('.panel-title').innerText);
}"""

expect.set_options(timeout=PATIENCE_MILLISECONDS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The machine's Chromium."""
    found = find(*NAMES, brought_by="apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


def opened(page: Page, address: str) -> Page:
    """The dashboard at `address`, once every panel has its data and those in sight are drawn."""
    page.set_default_timeout(PATIENCE_MILLISECONDS)
    page.goto(address)
    settle(page)
    return page


def settle(page: Page) -> None:
    """Wait until every panel has its data. Raises AssertionError that names those without."""
    try:
        page.wait_for_function(f"({UNSETTLED})().length === 0")
    except TimeoutError as late:
        raise AssertionError(f"not drawn in time: {page.evaluate(UNSETTLED)}") from late


def unroll(page: Page) -> None:
    """Open every row, and wait for its panels."""
    for title in page.locator(".row-title:visible").all():
        while title.get_attribute("aria-expanded") == "false":
            title.click()
            with suppress(AssertionError):  # a page that connects anew has lost the click
                expect(title).to_have_attribute("aria-expanded", "true", timeout=10_000)
    settle(page)


def stretch(page: Page) -> None:
    """Make the window as high as the page, so that every chart is drawn."""
    width = page.evaluate("window.innerWidth")
    page.evaluate("window.scrollTo(0, 0)")
    page.set_viewport_size({"width": width, "height": page.evaluate("document.documentElement.scrollHeight")})
    settle(page)
