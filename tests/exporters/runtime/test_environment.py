import pytest

from heapwatch.runtime.environment import is_on, trainer_port, unread


def warned(caplog):
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(("text", "on"), [("", True), ("ON", True), ("0", False), (" False ", False)])
def test_a_switch(text, on, caplog):
    assert is_on("HEAPWATCH_SERVE", {"HEAPWATCH_SERVE": text}) is on
    assert is_on("HEAPWATCH_SERVE", {}) is True
    assert warned(caplog) == []


def test_a_wrong_switch_stays_on_and_is_said_once(caplog):
    for _ in range(3):
        assert is_on("HEAPWATCH_SERVE", {"HEAPWATCH_SERVE": "mayb\n"})
    assert warned(caplog) == ["HEAPWATCH_SERVE is 'mayb\\n', allowed is on or off; it stays on"]


@pytest.mark.parametrize("text", ["65536", "-1", "http"])
def test_what_is_no_port_is_an_error(text, monkeypatch):
    monkeypatch.setenv("HEAPWATCH_TRAINER_PORT", text)
    with pytest.raises(ValueError, match="must be a port, 0 to 65535"):
        trainer_port()


def test_a_name_that_nothing_reads_is_reported_with_the_nearest():
    assert unread({"HEAPWATCH_TRACES": "1"}) == (
        "nothing reads HEAPWATCH_TRACES; did you mean HEAPWATCH_TRACE? (or unset it)"
    )
    assert unread({"HEAPWATCH_TRACE": "1", "PATH": "/bin", "HEAPWATCH_RECEIVER_X": "1"}) is None
    assert "RECEIVER_XY" in unread({"HEAPWATCH_RECEIVER_X": "1"}, {"HEAPWATCH_RECEIVER_XY"})
