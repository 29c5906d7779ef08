import io
import json
import logging
import subprocess
import sys

import pytest

from heapwatch.text.terminal import Block, plain, say, say_json


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Gedächtnis 記憶 🤖", "Gedächtnis 記憶 🤖"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b2J", "\\x9b2J"),
        ("a\nCRITICAL b\r\t", "a\\nCRITICAL b\\r\\t"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("exe.\u202egnp", "exe.\\u202egnp"),
        ("\ud800", "\\ud800"),
        ("5\u00a0MB", "5 MB"),
    ],
)
def test_what_controls_a_terminal_is_shown_instead(given, shown):
    assert plain(given) == shown


def test_any_text_becomes_one_printable_line():
    everything = plain("".join(map(chr, range(0x11000))))
    assert everything.isprintable()
    everything.encode()


def test_long_text_is_cut():
    assert plain("x" * 100, 10) == "xxxxxxx..."
    assert plain("x" * 10, 10) == "x" * 10


CONTROLS = "a\x1b]0;t\x07\x9b2J\x7f\n\u202e\u2066\u200b\ud800[bold]"


def test_a_printed_line_stays_one_line(capsys):
    say("first", CONTROLS)
    say(CONTROLS, error=True)
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == "first"
    assert lines[1:] == printed.err.splitlines() == [plain(CONTROLS)]
    assert lines[1].isprintable()
    assert lines[1].endswith("[bold]")


def test_what_a_stream_cannot_encode_is_escaped_and_without_one_nothing_is_printed(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", stream)
    say("Gedächtnis 記憶")
    assert stream.buffer.getvalue() == b"Ged\\xe4chtnis \\u8a18\\u61b6\n"
    monkeypatch.setattr(sys, "stdout", None)
    say("nobody reads this")


def test_json_is_printed_without_control_characters(capsys):
    say_json({"path": CONTROLS})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"path": CONTROLS}
    assert printed.replace("\n", "").isprintable()
    assert printed.isascii()


def test_a_logged_line_stays_one_line(caplog):
    caplog.set_level(logging.INFO)
    log = logging.getLogger("heapwatch")
    log.info("%s grows", CONTROLS)
    try:
        raise ValueError(CONTROLS)
    except ValueError:
        log.warning("failed", exc_info=True)
    assert [record.getMessage() for record in caplog.records] == [f"{plain(CONTROLS)} grows", "failed"]
    assert all(line.isprintable() for line in caplog.text.splitlines())
    assert len(caplog.text.splitlines()) == 2


def test_lines_that_are_logged_together_stay_apart(caplog):
    logging.getLogger("heapwatch").warning("%s", Block(["LEAK", CONTROLS]))
    assert caplog.records[0].getMessage().split("\n") == ["LEAK", plain(CONTROLS)]


SAY = """
log = logging.getLogger("heapwatch")
log.info("a notice")
log.warning("a warning")
"""
START = "import logging\nfrom heapwatch.text.terminal import show_notices\n"


@pytest.mark.parametrize(
    ("setup", "seen"),
    [
        ("show_notices()", ["heapwatch: a notice", "heapwatch: a warning"]),
        ("logging.basicConfig(); show_notices()", ["WARNING:heapwatch:a warning"]),
        (
            "show_notices(); logging.basicConfig(level='INFO')",
            ["INFO:heapwatch:a notice", "WARNING:heapwatch:a warning"],
        ),
        ("logging.getLogger('heapwatch').setLevel('ERROR'); show_notices()", []),
        ("show_notices(); logging.getLogger('heapwatch').setLevel('WARNING')", ["heapwatch: a warning"]),
    ],
)
def test_lines_appear_once_and_only_where_nobody_decided_otherwise(setup, seen):
    done = subprocess.run(
        [sys.executable, "-c", f"{START}{setup}{SAY}"], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines() == seen
    assert done.stdout == ""
