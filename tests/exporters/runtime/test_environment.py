import logging

import pytest

from heapwatch.runtime.environment import choice, is_on, say_once, share, unread, whole_number


def warned(caplog):
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("text", "on"),
    [("", True), ("1", True), ("ON", True), ("yes", True), ("0", False), ("off", False), (" False ", False)],
)
def test_a_switch(text, on, caplog):
    assert is_on("HEAPWATCH_SERVE", {"HEAPWATCH_SERVE": text}) is on
    assert is_on("HEAPWATCH_SERVE", {}) is True
    assert warned(caplog) == []


def test_a_wrong_switch_stays_on_and_is_said_once(caplog):
    for _ in range(3):
        assert is_on("HEAPWATCH_SERVE", {"HEAPWATCH_SERVE": "mayb\n"})
    assert warned(caplog) == ["HEAPWATCH_SERVE is 'mayb\\n', allowed is on or off; it stays on"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0.002),
        ("on", 0.002),
        ("1", 0.002),
        ("0", 0.0),
        ("off", 0.0),
        ("0.1%", 0.001),
        ("100%", 1),
        ("0%", 0),
    ],
)
def test_a_share(text, expected, caplog):
    assert share("HEAPWATCH_EXPLAIN", 0.002, {"HEAPWATCH_EXPLAIN": text}) == pytest.approx(expected)
    assert warned(caplog) == []


@pytest.mark.parametrize("text", ["101%", "-1%", "0.1", "nan%", "1e3%", "%", "9" * 9000 + "%"])
def test_a_wrong_share_is_said_and_the_usual_one_is_used(text, caplog):
    assert share("HEAPWATCH_EXPLAIN", 0.002, {"HEAPWATCH_EXPLAIN": text}) == 0.002
    (line,) = warned(caplog)
    assert "allowed is off, on or a percentage such as 0.1%; 0.2% is used" in line
    assert len(line) < 200


@pytest.mark.parametrize(
    ("text", "expected"), [("7", 7), ("", 5), ("11", 5), ("x", 5), ("9" * 9000, 5), ("\u0661", 5)]
)
def test_a_number(text, expected):
    assert whole_number("HEAPWATCH_STALL_MS", 5, 10, "a number", {"HEAPWATCH_STALL_MS": text}) == expected


@pytest.mark.parametrize(("text", "expected"), [("a", "a"), ("b", "b"), ("", "a"), ("c", "a")])
def test_a_choice(text, expected):
    assert choice("HEAPWATCH_PROFILE", ("a", "b"), "a", {"HEAPWATCH_PROFILE": text}) == expected


def test_a_name_that_nothing_reads_is_reported_with_the_nearest():
    assert unread({"HEAPWATCH_TRACES": "1"}) == (
        "nothing reads HEAPWATCH_TRACES; did you mean HEAPWATCH_TRACE? (or unset it)"
    )
    assert unread({"HEAPWATCH_TRACE": "1", "PATH": "/bin", "HEAPWATCH_RECEIVER_X": "1"}) is None
    assert "RECEIVER_XY" in unread({"HEAPWATCH_RECEIVER_X": "1"}, {"HEAPWATCH_RECEIVER_XY"})


def test_a_message_is_said_once(caplog):
    with caplog.at_level(logging.WARNING):
        say_once("a")
        say_once("b")
        say_once("a")
    assert warned(caplog) == ["a", "b"]
