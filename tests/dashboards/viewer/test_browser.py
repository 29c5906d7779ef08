"""Every dashboard as a user sees it, in headless Chromium."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.dashboards.server import free_port
from tests.dashboards.viewer.conftest import start_viewer

GENERATED = Path(__file__).parents[3] / "dashboards" / "generated"
UIDS = sorted(json.loads(path.read_text())["uid"] for path in GENERATED.glob("*.json"))
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1500, "height": 1000})
    page.complaints = []
    page.on(
        "console", lambda message: page.complaints.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda problem: page.complaints.append(str(problem)))
    yield page
    page.close()


def opened(page: Page, address: str) -> Page:
    """The dashboard at `address`, once every panel in sight has something to show."""
    page.goto(address)
    page.wait_for_function(
        """() => {
            const panels = [...document.querySelectorAll('.panel')].filter((panel) => panel.offsetParent);
            const done = (panel) => panel.querySelector('.panel-body').childElementCount
                || panel.querySelector('.panel-error')?.offsetParent;
            return panels.length && panels.every(done);
        }""",
        timeout=30_000,
    )
    return page


def unroll(page: Page) -> None:
    """Open every collapsed row."""
    for title in page.locator(".row-title:has(:text('chevron_right'))").all()[::-1]:
        title.click()


@pytest.mark.parametrize("uid", UIDS)
def test_every_panel_of_every_dashboard_shows_data(page, viewer, uid):
    opened(page, f"{viewer}/d/{uid}?from=now-3h&to=now")
    unroll(page)
    page.wait_for_timeout(1500)
    visible_error = page.locator(".panel-error:visible")
    assert visible_error.all_inner_texts() == []
    empty = page.locator(".panel:has(.empty:visible), .panel:has(.tile.muted:visible)").locator(
        ".panel-title"
    )
    assert empty.all_inner_texts() == []
    assert page.locator(".panel:visible").count() >= 4
    drawn = page.evaluate(
        "() => [...document.querySelectorAll('.plot')].filter((plot) => !plot.querySelector('canvas')).length"
    )
    assert drawn == 0
    assert page.complaints == []


def test_the_leak_is_visible_at_a_glance(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-fleet")
    trainers = page.locator(".panel", has_text="Trainers by verdict").locator("tbody tr")
    expect(trainers.filter(has_text="127.0.0.1:7778")).to_contain_text("leak")
    expect(trainers.filter(has_text="healthy")).to_contain_text("127.0.0.1:7777")


def test_a_link_leads_to_the_trainer_and_keeps_the_time_range(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-fleet?from=now-1h&to=now")
    page.locator("table.data a", has_text="127.0.0.1:7778").first.click()
    page.wait_for_url(re.compile(r"/d/heapwatch-trainer.*var-instance=127\.0\.0\.1.*from=now-1h"))


def test_a_variable_narrows_every_panel(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-world?var-instance=127.0.0.1:7778")
    expect(page.locator(".legend").first).to_be_visible()
    assert "10.0.0.21:7777" not in page.locator(".grid").first.inner_text()


def test_a_time_range_is_chosen_and_kept_in_the_address(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-trainer")
    page.get_by_text("Last 3 hours").first.click()
    page.get_by_text("Last 1 hour", exact=True).click()
    page.wait_for_url(re.compile("from=now-1h"))


def test_dragging_over_a_chart_zooms_all_of_them(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-trainer")
    box = page.locator(".plot").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=\d{13}&to=\d{13}"))
    assert page.complaints == []


def test_the_crosshair_is_shared(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-trainer")
    box = page.locator(".plot").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function(
        "() => [...document.querySelectorAll('.crosshair')].some((line) => line.style.display === 'block')"
    )


def test_a_click_in_the_legend_isolates_a_series(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-fleet")
    legend = page.locator(".legend:has(tr[data-series] + tr[data-series])").first
    legend.locator("tr[data-series]").first.click()
    expect(legend.locator("tr.off").first).to_be_visible()
    legend.locator("tr[data-series]").first.click()
    expect(legend.locator("tr.off")).to_have_count(0)


def test_dark_and_light(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-fleet?theme=light")
    light = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.locator("button:has-text('contrast')").click()
    page.wait_for_url(re.compile("theme=dark"))
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") != light


def test_a_malformed_range_and_an_unknown_dashboard_are_said(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-fleet?from=yesterday")
    expect(page.locator(".note.error")).to_contain_text("'yesterday' is no time")
    page.goto(f"{viewer}/d/nonsense")
    expect(page.locator(".note.error")).to_contain_text("There is no dashboard nonsense")


def test_a_dead_prometheus_is_said_in_each_panel(page):
    process, url = start_viewer(f"http://127.0.0.1:{free_port()}")
    try:
        opened(page, f"{url}/d/heapwatch-trainer")
        errors = page.locator(".panel-error:visible").all_inner_texts()
        assert errors
        assert all("Prometheus does not answer" in text for text in errors)
    finally:
        process.terminate()
        process.wait(timeout=20)
