import logging
import re
import time

import pytest

import heapwatch
from heapwatch.recording.points import Buffer, Point
from heapwatch.report.interval import MemoryReport
from tests.support.runs import generations


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.INFO, "heapwatch")
    return lambda: [record.getMessage() for record in caplog.records]


def epochs(report, count, first=1, **levels):
    for epoch in range(first, first + count):
        fields = {name: level(epoch) for name, level in levels.items()}
        report.take(Point(60.0 * epoch, "cycle", 1e9, progress={"epoch": epoch}, **fields))


def test_the_documents_report(logged):
    report = MemoryReport("metta", 100, "epoch")
    epochs(
        report,
        101,
        sizes=lambda epoch: {
            "experience": 0.73e9 + 6e6 * epoch,
            "policy.state_dict": 45.23e6,
            "trainer.stats": 1.14e6 + 12e3 * epoch,
        },
        objects=lambda epoch: {"Environment": 16},
    )
    text, warning = logged()
    assert text.splitlines() == [
        "",
        "=" * 60,
        "Memory Report - Epoch 100",
        "=" * 60,
        "",
        "Current Memory Usage:",
        "  process (RSS)                            1 GB",
        "  experience                            1.33 GB",
        "  policy.state_dict                     45.2 MB",
        "  trainer.stats                         2.34 MB",
        "",
        "Memory Growth:",
        "  experience                            +594 MB (+6 MB/epoch)",
        "  trainer.stats                        +1.19 MB (+12 kB/epoch)",
        "",
        "Object Count Changes:",
        "  Environment                         16 -> 16 (+0)  healthy",
        "=" * 60,
        "",
        "WARNING: Potential memory leaks detected in: ['experience']",
    ]
    assert warning.splitlines()[0] == "LEAK FOUND:"


def test_the_last_line_is_that_of_a_report_of_the_end(logged):
    with heapwatch.Watch("fire_dqn") as watch:
        watch.memory_report_interval(10, "episode")
        (report,) = watch.exporter._journal.sinks
        for episode in range(1, 12):
            now = time.time() + 60.0 * episode
            buffers = {"memory": Buffer(2e6, 20, 1e6)}
            point = Point(now, "cycle", 1e9, progress={"episode": episode}, buffers=buffers)
            report.take(point)
        watch.exporter.is_running = True
    found = "memory buffer: 2 MB, past its bound of 1 MB"
    assert logged()[-1] == f"fire_dqn has ended: leak: {found}"


def test_a_leak_that_a_report_found_and_that_was_cleaned_up_is_none_at_the_end(logged):
    report = MemoryReport("fire_dqn", 10, "episode")
    for episode in range(1, 20):
        held = Buffer(2e6, 20, 1e6) if episode < 12 else Buffer(1e6, 10, 1e6)
        report.take(
            Point(60.0 * episode, "cycle", 1e9, progress={"episode": episode}, buffers={"memory": held})
        )
    assert "LEAK FOUND" in logged()[-1]
    report.close()
    assert report.leak == ""


def epochs_reported(lines):
    return [
        int(text.rpartition(" ")[2]) for text in "\n".join(lines).splitlines() if text.startswith("Memory R")
    ]


@pytest.mark.parametrize("interval", [1, 3, 100])
def test_a_report_is_of_the_cycle_in_which_it_is_due(logged, monkeypatch, interval):
    """Cycles that last no time at all; reports may take all of it."""
    monkeypatch.setattr("heapwatch.report.interval._MOST_SHARE", 1.0)
    with heapwatch.Watch("metta") as watch:
        done: list[int] = []
        watch.size("buffer", lambda: bytes(10**6 * len(done)))
        watch.memory_report_interval(interval)
        watch.size_interval(interval)
        for epoch in range(4 * interval - 1):
            done.append(epoch)
            watch.progress("epoch")
        monkeypatch.setattr("heapwatch.recording.journal._STOP_SECONDS", 60)
    assert epochs_reported(logged()) == [interval, 2 * interval, 3 * interval]
    sizes = [
        line.split()[1:] for text in logged() for line in text.splitlines() if line.startswith("  buffer ")
    ]
    assert [size for size in sizes if len(size) == 2] == [
        size_of.split() for size_of in (f"{interval} MB", f"{2 * interval} MB", f"{3 * interval} MB")
    ]


def test_a_report_of_a_smaller_unit_is_also_of_the_cycle_in_which_it_is_due(logged, monkeypatch):
    monkeypatch.setattr("heapwatch.report.interval._MOST_SHARE", 1.0)
    monkeypatch.setattr("heapwatch.recording.journal._STOP_SECONDS", 60)
    with heapwatch.Watch("erl") as watch:
        watch.memory_report_interval(10, "episode")
        for episode in range(1, 50):
            watch.progress("episode")
            if episode % 16 == 0:
                watch.progress("generation")
    assert epochs_reported(logged()) == [10, 20, 30, 40]


def test_reports_that_take_too_much_time_are_left_out(logged, monkeypatch):
    report = MemoryReport("metta", 1, "epoch")
    now = [1000.0]
    monkeypatch.setattr("heapwatch.report.interval.time.monotonic", lambda: now[0])
    monkeypatch.setattr("heapwatch.report.interval.own_time", iter([0.0, 2.0]).__next__)
    assert report.is_due("epoch", 1)
    epochs(report, 1)
    for now[0], epoch, due in ((1007.9, 2, False), (1008.1, 3, True)):
        assert report.is_due("epoch", epoch) is due
    assert not report.is_due("episode", 5000)


def test_the_trend_follows_where_it_is_asked_for(logged):
    for trend in (False, True):
        report = MemoryReport("erl", 1, "generation", trend=trend)
        for point in generations(2, evaluation=4.29e9).points:
            report.take(point)
    *_, without, with_trend = [text for text in logged() if "Memory Report - Generation 2" in text]
    assert "MEMORY TREND" not in without
    _, trend, growth = re.split(r"=+\n(?=MEMORY (?:TREND|GROWTH))", with_trend)
    assert trend.startswith("MEMORY TREND ACROSS GENERATIONS\n")
    assert len(re.findall(r"(?m)^(Trainer initialized|Gen [12]: After \w+) .*GB", trend)) == 7
    assert re.search(r"(?m)^Growth +\+8\.58 GB \(\+202\.8%\)$", growth)


def test_reports_come_at_the_interval_and_keep_a_bounded_history(logged):
    report = MemoryReport("metta", 500, "epoch")
    report.take(Point(0.0, "start", 1e9))
    epochs(report, 2400)
    assert [text.splitlines()[2] for text in logged()] == [
        f"Memory Report - Epoch {epoch}" for epoch in (500, 1000, 1500, 2000)
    ]
    assert 250 < len(report._points) <= 1000
    assert report._points[0].event == "start"
