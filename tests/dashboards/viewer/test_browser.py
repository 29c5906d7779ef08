"""Every dashboard as a user sees it, in headless Chromium."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.dashboards.browser import chromium, opened, stretch, unroll
from tests.dashboards.server import prometheus
from tests.dashboards.viewer.conftest import running_viewer
from tests.support.http_client import CLIENT
from tests.support.ports import free_port

pytestmark = pytest.mark.slow

GENERATED = Path(__file__).parents[3] / "dashboards" / "generated"
UIDS = sorted(json.loads(path.read_text())["uid"] for path in GENERATED.glob("*.json"))
WITH_DATA = {f"heapwatch-{name}": "&var-instance=ppo-growing:7777" for name in ("buffers", "gpu", "phases")}
SIZE = {"width": 1500, "height": 1000}
PHONE = {"width": 420, "height": 900}
WHOLE = """width => document.documentElement.scrollWidth <= width
    && [...document.querySelectorAll('.panel.table .panel-body')].every(
        body => body.scrollWidth <= body.clientWidth)"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport=SIZE)
    page.complaints = []
    page.on(
        "console", lambda message: page.complaints.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda problem: page.complaints.append(str(problem)))
    yield page
    page.close()


@pytest.mark.parametrize("uid", UIDS)
def test_every_panel_shows_data_and_no_table_is_cut_at_any_width(page, viewer, uid):
    opened(page, f"{viewer}/d/{uid}?from=now-3h&to=now{WITH_DATA.get(uid, '')}")
    unroll(page)
    stretch(page)
    assert page.locator(".panel-error:visible").all_inner_texts() == []
    empty = page.locator(".panel:has(.empty:visible)")
    assert empty.locator(".panel-title").all_inner_texts() == []
    assert page.locator(".panel:visible").count() >= 4
    assert page.locator(".plot:visible").count() == page.locator(".plot:visible:has(canvas)").count()
    for width in (901, 601, PHONE["width"]):  # the style changes at 900 and 600
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(WHOLE, arg=width, timeout=10_000)
    assert page.complaints == []


def test_charts_are_drawn_when_they_leave_and_enter_the_window_at_once(page, viewer):
    """A busy browser hands over several changes of one chart at once, the oldest first."""
    page.add_init_script("""
        const Observer = window.IntersectionObserver;
        window.IntersectionObserver = class extends Observer {
            constructor(callback, options) {
                super((entries) => callback([{ isIntersecting: false }, ...entries]), options);
            }
        };
    """)
    opened(page, f"{viewer}/d/heapwatch-phases?from=now-3h&to=now")
    assert page.locator(".plot:visible canvas").count() > 0


def test_the_address_alone_shows_the_fleet_and_the_leak_at_a_glance(page, viewer):
    opened(page, viewer)
    assert page.url.startswith(f"{viewer}/d/heapwatch-fleet")
    trainers = page.locator(".panel", has_text="Trainers by verdict").locator("tbody tr")
    expect(trainers.filter(has_text="walker-leaking")).to_contain_text("leak")
    expect(trainers.filter(has_text="walker-leaking")).to_contain_text("ecosystem.py:118")
    expect(trainers.filter(has_text="walker-healthy")).to_contain_text("healthy")
    expect(trainers.last).to_contain_text("too early")
    killed = trainers.filter(has_text="sac-killed")
    for known in (
        "down or stalled",
        "8.8 GB",
        "agent.losses",
        "sac.py:61",
        "killed by the kernel, out of memory",
    ):
        expect(killed).to_contain_text(known)
    expect(trainers.filter(has_text="dqn-ended")).to_have_count(0)
    for title, number in (("Trainers", 9), ("Leaking", 3), ("Over a limit", 3), ("Down or stalled", 2)):
        panel = page.locator(f".panel.stat:has(.panel-title :text-is('{title}'))")
        expect(panel.locator(".value")).to_have_text(str(number))


def test_a_link_to_a_trainer_keeps_the_time_range_and_only_fleet_forgets_it(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-fleet?from=now-1h&to=now")
    page.locator("table.data a", has_text="walker-leaking").first.click()
    page.wait_for_url(re.compile(r"/d/heapwatch-trainer.*var-instance=walker-leaking.*from=now-1h"))
    chosen = re.compile("var-instance=walker-leaking")
    expect(page.get_by_role("link", name="Phases")).to_have_attribute("href", chosen)
    expect(page.get_by_role("link", name="Fleet")).not_to_have_attribute("href", chosen)


def test_the_name_of_a_machine_leads_to_its_own_page(page, viewer):
    opened(page, viewer)
    page.locator("table.data a", has_text="node, ").first.click()
    expect(page).to_have_url(re.compile("/d/heapwatch-machine.*var-instance=node"))
    expect(page.locator(".panel", has_text="Groups of processes").locator("tbody tr").first).to_contain_text(
        "RolloutWorker"
    )


def test_what_the_toolbar_offers_is_chosen_and_kept_in_the_address(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-world")
    page.wait_for_url(re.compile("var-instance=walker-leaking%3A7777"))  # the fastest leak
    page.get_by_role("combobox", name="Trainer").click()
    expect(page.get_by_role("option", name="All", exact=True)).to_have_count(0)
    page.get_by_role("option", name="walker-healthy, 11-24 12:00").click()
    page.wait_for_url(re.compile("var-instance=walker-healthy%3A7777"))
    expect(page.locator(".panel:has-text('In the world now') tbody tr").first).to_contain_text("healthy")


def test_an_unknown_trainer_in_a_link_is_said_and_no_other_is_shown_in_its_place(page, viewer):
    for board in ("trainer", "alerts"):
        opened(page, f"{viewer}/d/heapwatch-{board}?var-instance=nowhere:1")
        note = page.locator(".note.error:visible")
        expect(note).to_have_text("There is no trainer nowhere:1 in this time range.")
        expect(page.locator(".bar-top")).to_contain_text("nowhere:1")
        assert not [text for text in page.locator(".grid").all_inner_texts() if "walker" in text]


def test_a_phone_shows_growth_and_time_left_without_scrolling_sideways(page, viewer):
    page.set_viewport_size(PHONE)
    opened(page, f"{viewer}/d/heapwatch-fleet")
    table = page.locator(".panel:has(.panel-title :text-is('Trainers by verdict'))")
    for column in ("Per minute", "Time left"):
        cell = table.locator(f"td[data-name='{column}']").first
        cell.scroll_into_view_if_needed()
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
    page.mouse.wheel(0, 1500)
    page.wait_for_function("() => window.scrollY > 500")
    assert page.locator(".bar-top").evaluate("bar => bar.getBoundingClientRect().bottom") <= 0


def test_the_legend_isolates_a_series_the_crosshair_is_shared_and_dragging_zooms(page, viewer):
    opened(page, f"{viewer}/d/heapwatch-phases?theme=light&var-instance=ppo-growing:7777")
    legend = page.locator(".legend:has(tr[data-series] + tr[data-series])").first
    legend.locator("tr[data-series]").first.click()
    expect(legend.locator("tr.off").first).to_be_visible()
    legend.locator("tr[data-series]").first.click()
    expect(legend.locator("tr.off")).to_have_count(0)
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(244, 245, 245)"
    box = page.locator(".plot").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    shown = "[...document.querySelectorAll('.crosshair')].filter(line => line.style.display === 'block')"
    page.wait_for_function(f"() => {shown}.length > 1")
    page.mouse.move(box["x"] + box["width"] * 0.4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=\d{13}&to=\d{13}"))
    page.get_by_text("of your choice").click()
    page.get_by_text("Last 3 hours", exact=True).click()
    page.wait_for_url(re.compile("from=now-3h"))
    assert page.complaints == []


def test_bars_share_the_time_axis_of_lines(page, viewer):
    # The made-up history is as old as this run of the tests.
    opened(page, f"{viewer}/d/heapwatch-alerts?from=now-6h&to=now")
    lines, bars = (
        page.locator(f".panel:has(.panel-title :text-is('{title}'))")
        for title in ("Memory around cleanups", "Removed by cleanups")
    )
    lines.scroll_into_view_if_needed()
    expect(bars.locator("canvas")).to_be_visible()
    box, other = (panel.locator(".plot").bounding_box() for panel in (lines, bars))
    for share in (0.25, 0.75):
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        left = float(bars.locator(".crosshair").evaluate("line => line.style.left").removesuffix("px"))
        assert abs(left / other["width"] - share) < 0.06


def test_no_trainers_and_a_dead_prometheus_are_said_and_a_restart_is_survived(page, tmp_path):
    at = free_port()
    with running_viewer(f"http://127.0.0.1:{at}") as url:
        with prometheus(tmp_path, port=at):
            opened(page, f"{url}/d/heapwatch-fleet")
            expect(page.locator("code:visible").first).to_have_text("heapwatch run train.py")
            number = page.locator(".panel.stat .value:visible, .panel.stat .empty:visible").first
            expect(number).to_be_visible()
        outage = page.locator(".outage:visible")
        expect(outage).to_contain_text("`heapwatch status`", timeout=15_000)
        expect(number).to_be_hidden()  # what it says is not known any more
        with prometheus(tmp_path, port=at):
            expect(outage).to_have_count(0, timeout=15_000)
            expect(number).to_be_visible()
        page.goto(f"{url}/d/heapwatch-gpu")
        expect(outage).to_contain_text(f"Prometheus does not answer at http://127.0.0.1:{at}")
        page.evaluate("window.before = true")
    with running_viewer(f"http://127.0.0.1:{at}", port=int(url.rpartition(":")[2])):
        page.wait_for_function("() => !window.before", timeout=60_000)
        expect(outage).to_be_visible()


def test_a_name_that_was_made_to_point_at_this_machine_reads_nothing(viewer):
    for host in ("evil.example", "evil.example:3009", "127.0.0.1.evil.example", ""):
        for path in ("/", "/metrics", "/d/heapwatch-fleet"):
            answer = CLIENT.get(viewer + path, headers={"Host": host}, timeout=30)
            assert answer.status_code in (400, 421), (host, path)


def test_a_malformed_range_and_an_unknown_dashboard_are_said(page, viewer):
    page.goto(f"{viewer}/d/nonsense")
    expect(page.locator(".note.error:visible")).to_contain_text("There is no dashboard nonsense")
    opened(page, f"{viewer}/d/heapwatch-phases?from=yesterday")
    expect(page.locator(".note.error:visible")).to_contain_text("'yesterday' is not a time")
