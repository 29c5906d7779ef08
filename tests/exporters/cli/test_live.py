import io
from types import SimpleNamespace

from rich.console import Console

from heapwatch.cli.live import LiveView
from heapwatch.cli.reporter import Reporter
from heapwatch.cli.thresholds import Thresholds
from tests.exporters.cli.test_reporter import sample


def screen(samples):
    reporter = Reporter(Thresholds(), interval=15.0)
    for one in samples:
        reporter.report(one)
    console = Console(file=io.StringIO(), width=140, height=40)
    view = LiveView(interval=15.0, console=console)
    console.print(view._screen(SimpleNamespace(samples=samples[-1:], reporters={"127.0.0.1:7777": reporter})))
    return " ".join(console.file.getvalue().split())


def growing(minute, extra=""):
    return sample(60.0 * minute, memory=100e6 + 20e6 * minute, dynamic=155 + 3 * minute, extra=extra)


def test_growth_is_shown_by_component():
    shown = screen([growing(minute) for minute in range(8)])
    assert "127.0.0.1:7777 memory 240.0MB +20.0MB/min" in shown
    assert "127.0.0.1:7777 dynamic_bodies 176 +3/min" in shown
    assert "food_sources" not in shown.partition("what grows")[2]


def test_paths_that_the_trainer_found_come_first_and_cannot_draw_on_the_screen():
    path = '{path="agent.\x1b[2Jlog",type="list",kind="container"}'
    extra = f"""trainer_growing_path_bytes{path} 5e8
trainer_growing_path_growth_bytes_per_minute{path} 1.5e7"""
    shown = screen([growing(minute, extra) for minute in range(8)])
    assert "agent.\\x1b[2Jlog 500.0MB +15.0MB/min" in shown
    assert shown.index("agent.") < shown.index("memory 240.0MB")


def test_a_trainer_that_is_too_new_shows_no_growth():
    assert "nothing, or watched for less than two minutes" in screen([growing(0)])
