import logging
import time

import pytest

import heapwatch
from heapwatch.recording.points import Buffer, Point
from heapwatch.report.interval import MemoryReport


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
        (report,) = watch._exporter._journal.sinks
        for episode in range(1, 12):
            now = time.time() + 60.0 * episode
            buffers = {"memory": Buffer(2e6, 20, 1e6)}
            point = Point(now, "cycle", 1e9, progress={"episode": episode}, buffers=buffers)
            report.take(point)
        watch._exporter.is_running = True
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


def test_reports_come_at_the_interval_and_keep_a_bounded_history(logged):
    report = MemoryReport("metta", 500, "epoch")
    report.take(Point(0.0, "start", 1e9))
    epochs(report, 2400)
    assert [text.splitlines()[2] for text in logged()] == [
        f"Memory Report - Epoch {epoch}" for epoch in (500, 1000, 1500, 2000)
    ]
    assert 250 < len(report._points) <= 1000
    assert report._points[0].event == "start"
