import logging
import sys

from heapwatch_receiver.log import PlainFormatter


def formatted(message, *arguments, error=None):
    info = None
    if error is not None:
        try:
            raise error
        except type(error):
            info = sys.exc_info()
    record = logging.LogRecord("heapwatch", logging.INFO, "", 0, message, arguments, info)
    return PlainFormatter("%(levelname)s %(message)s").format(record)


def test_an_alert_cannot_write_log_lines_of_its_own():
    line = formatted("%s: failed", "a:1\n2026-01-01 INFO helped\x1b[1A")
    assert line == "INFO a:1\\n2026-01-01 INFO helped\\x1b[1A: failed"


def test_a_traceback_keeps_its_lines_and_nothing_else():
    text = formatted("failed", error=ValueError("\x1b]0;owned\x07"))
    _, *traceback = text.split("\n")
    assert len(traceback) >= 3
    assert all(line.isprintable() and line.startswith("  ") for line in traceback)


def test_a_line_is_bounded():
    assert len(formatted("%s", "x" * 1_000_000)) < 5000
