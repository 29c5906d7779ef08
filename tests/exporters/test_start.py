"""What a start reads, says and refuses, and that nothing it meets ends the training."""

import json
import logging
import os
import socket
import subprocess
import sys
from urllib.request import Request, urlopen

import psutil
import pytest

import heapwatch
from heapwatch import lifecycle, stacks
from heapwatch.explain.findings import Explanation
from heapwatch.recording.file import read_explanation
from tests.support.exposed import get
from tests.support.standing_stack import StandingStack
from tests.support.unreadable_files import OF_ANOTHER_USER, UNREADABLE, others_file


@pytest.fixture
def said(caplog):
    """Calls a function and returns what it logs, as level and text."""

    def listen(function):
        with caplog.at_level(logging.INFO):
            function()
        return [(record.levelname, record.getMessage()) for record in caplog.records]

    return listen


@pytest.fixture
def taken():
    """A port that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_a_port_that_was_asked_for_is_skipped_with_a_warning(by, said, monkeypatch, taken):
    monkeypatch.setenv("HEAPWATCH_TRAINER_PORT", str(taken) if by == "environment" else "")
    lines = said(lambda: heapwatch.start("second", port=taken if by == "argument" else None).stop())
    assert [level for level, _ in lines] == ["WARNING", "INFO", "INFO"]
    assert f"port {taken} is taken" in lines[0][1]


def test_a_start_says_in_one_line_on_stderr_where_it_is_and_what_to_do(tmp_path):
    script = "import heapwatch; heapwatch.start('mine', port=0)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    began, ended = done.stderr.splitlines()
    assert began.startswith("heapwatch: mine at http://127.0.0.1:")
    assert began.endswith(": no stack scrapes it, `heapwatch up` starts one")
    assert ended.startswith("heapwatch: mine has ended: too early to tell")


def test_a_running_stack_gets_the_trainer_and_its_token_closes_the_loop(tmp_path, monkeypatch):
    monkeypatch.delenv("HEAPWATCH_TARGETS_DIR")
    stack = StandingStack(stacks.default_state())
    try:
        with heapwatch.start(port=0) as watch:
            headers = {"Authorization": "Bearer the-stacks-token", "Content-Type": "application/json"}
            body = b'{"timeout_seconds": 0.1}'
            asked = Request(f"{watch.server.url}force_cleanup", data=body, headers=headers)
            with urlopen(asked, timeout=20) as answer:
                assert answer.status == 202
            assert "trainer_cleanup_ready 1.0" in get(watch)
            assert len(list(stack.targets.glob("*.json"))) == 1
        assert not list(stack.targets.glob("*.json"))
    finally:
        stack.die()


def lines(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TRAINER_PORT", "http", "must be a port, 0 to 65535"),
        ("PROFILE", "fast", "allowed is default"),
        ("RECORD", "/nowhere/run.jsonl", "nothing is recorded"),
        ("RECORD", "/dev/null", "nothing is recorded: /dev/null is no regular file"),
        ("TOKEN", "a b", "cannot be used"),
        ("TOKEN_FILE", "~nobody-here/token", "cannot be used"),
        ("TARGETS_DIR", "~nobody-here/targets", "no stack will find this trainer"),
        ("STATE", "~nobody-here/state", "no stack will find this trainer"),
        ("TRACE", "sometimes", "allowed is on or off"),
        ("SERVE", "maybe", "allowed is on or off"),
        ("TRACES", "0", "nothing reads HEAPWATCH_TRACES; did you mean HEAPWATCH_TRACE?"),
    ],
)
def test_a_wrong_variable_is_one_line_and_the_run_continues(name, value, said, monkeypatch, caplog):
    monkeypatch.delenv("HEAPWATCH_TARGETS_DIR")
    monkeypatch.setenv("HEAPWATCH_TRAINER_PORT", "0")
    monkeypatch.setenv(f"HEAPWATCH_{name}", value)
    with caplog.at_level(logging.WARNING, "heapwatch"), heapwatch.start() as watch:
        watch.step()
        assert get(watch)
    found = [line for line in lines(caplog) if said in line]
    assert len(found) == 1, caplog.text
    assert all(line.isprintable() and len(line) < 500 for line in lines(caplog))


@pytest.mark.parametrize("kind", [*UNREADABLE, OF_ANOTHER_USER])
def test_no_file_holds_or_ends_a_start(kind, tmp_path, monkeypatch, caplog):
    """Not one in the place of another target, of another stack, of the token and of the record."""
    if kind == OF_ANOTHER_USER and os.geteuid() != 0:
        pytest.skip("only root makes files of others")
    token, record = tmp_path / "token", tmp_path / "record.jsonl"
    announced = tmp_path / "user" / "heapwatch" / "stack" / stacks.ANNOUNCED
    for path in (tmp_path / "targets" / "x.json", announced, token, record):
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == OF_ANOTHER_USER:
            others_file(path, [{"targets": ["127.0.0.1:1"], "labels": {}}])
        else:
            UNREADABLE[kind](path)
    monkeypatch.setenv("HEAPWATCH_TOKEN_FILE", str(token))
    monkeypatch.setenv("HEAPWATCH_RECORD", str(record))
    with caplog.at_level(logging.WARNING, "heapwatch"), heapwatch.start(port=0) as watch:
        watch.step()
        assert watch.exporter.registration.folder == tmp_path / "targets"
    assert all(line.isprintable() and len(line) < 300 for line in lines(caplog))
    assert len(lines(caplog)) <= 2


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host"])
def test_an_address_that_is_none_costs_the_endpoint_and_raises_for_the_caller(host, monkeypatch, caplog):
    with pytest.raises(OSError, match=f"cannot listen on {host}"):
        heapwatch.start(port=0, host=host)
    monkeypatch.setenv("HEAPWATCH_BIND", host)
    with caplog.at_level(logging.WARNING, "heapwatch"), heapwatch.start(port=0) as watch:
        watch.step()
        assert watch.port is None
    (line,) = lines(caplog)
    assert line.startswith("trainer is not served: ")


def homeless(_path):
    raise RuntimeError("Could not determine home directory.")


def test_a_user_without_a_home_is_reported_once(monkeypatch, caplog):
    for name in ("XDG_STATE_HOME", "HEAPWATCH_TARGETS_DIR", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.expanduser", homeless)
    with caplog.at_level(logging.WARNING, "heapwatch"), heapwatch.start(port=0) as watch:
        watch.exporter.registration.refresh()
        assert get(watch)
    assert len(lines(caplog)) == 1
    assert "no stack will find this trainer" in caplog.text


def test_a_process_that_may_not_be_inspected_trains(monkeypatch, caplog, taken):
    def denied(*_arguments, **_options):
        raise psutil.AccessDenied

    for name in ("net_connections", "cpu_times", "virtual_memory", "process_iter", "boot_time"):
        monkeypatch.setattr(psutil, name, denied)
    for name in ("memory_info", "memory_full_info", "children", "cpu_times", "create_time", "status"):
        monkeypatch.setattr(psutil.Process, name, denied)
    with caplog.at_level(logging.WARNING, "heapwatch"), heapwatch.start(port=taken) as watch:
        watch.step()
        assert get(watch)


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), RuntimeError("no new thread")])
def test_a_process_that_can_serve_nothing_trains(error, monkeypatch, caplog):
    def broken(_server):
        raise error

    monkeypatch.setattr("heapwatch.http.server.Server.start", broken)
    with caplog.at_level(logging.WARNING, "heapwatch"), heapwatch.start(port=0) as watch:
        watch.step()
        assert watch.port is None
    assert len(lines(caplog)) == 1
    assert f"trainer is not served: {error.args[-1]}" in caplog.text


def test_what_the_caller_asks_for_still_raises(tmp_path, taken):
    os.mkfifo(tmp_path / "pipe")
    for options, error, text in (
        ({"record": tmp_path / "pipe"}, OSError, "pipe is no regular file"),
        ({"port": taken, "port_search": False}, OSError, "is taken; choose another port"),
        ({"profile": "fast"}, ValueError, "profile 'fast' is not known; allowed: .*default"),
    ):
        with pytest.raises(error, match=text):
            heapwatch.start(**{"port": 0, **options})


def test_the_endpoint_is_switched_off(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("HEAPWATCH_SERVE", "off")
    with caplog.at_level(logging.INFO, "heapwatch"), heapwatch.start("mine", record=tmp_path / "r") as watch:
        assert watch.port is None
        watch.step()
        watch.progress("epoch")
        assert watch.exporter.is_running
    assert not watch.exporter.is_running
    assert not (tmp_path / "targets").exists()
    assert "mine is not served: HEAPWATCH_SERVE is off" in caplog.text
    assert "mine has ended" in caplog.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
@pytest.mark.parametrize("by", ["argument", "environment"])
def test_cleanups_without_a_token_are_refused_beyond_loopback(monkeypatch, host, by):
    monkeypatch.setenv("HEAPWATCH_BIND", host if by == "environment" else "")
    with pytest.raises(ValueError, match=rf"only on 127.0.0.1, ::1, localhost, not on {host}"):
        heapwatch.start(port=0, host=host if by == "argument" else None, local_cleanup=True)
    assert not lifecycle.running()


def test_the_explainer_is_switched_off(monkeypatch, caplog):
    monkeypatch.setenv("HEAPWATCH_EXPLAIN", "0")
    with caplog.at_level(logging.INFO, "heapwatch"), heapwatch.start("mine", port=0) as watch:
        explainer = watch.exporter.explainer
        assert json.loads(get(watch, "explain"))["verdict"] == explainer.explain_now().verdict
        assert 'trainer_memory_verdict{verdict="too early"} 1.0' in get(watch)
        assert "trainer_judged_timestamp_seconds" in get(watch)
        assert explainer.inventory.rounds == 0, "levels are judged, and no object is looked at"
    assert "has ended" not in caplog.text


def test_the_log_and_the_record_end_with_the_same_explanation(caplog, tmp_path):
    with (
        caplog.at_level(logging.INFO, "heapwatch"),
        heapwatch.start("mine", port=0, record=tmp_path / "run") as watch,
    ):
        explainer = watch.exporter.explainer
        explainer.explanations.add(
            Explanation("leak", explainer.latest.seconds, 0.0, 0.0), 5e12, is_final=True
        )
    assert read_explanation(tmp_path / "run")["verdict"] == "leak"
    assert "mine has ended: leak" in caplog.text
