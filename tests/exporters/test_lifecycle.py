"""Workers, forks and ends of processes, in processes of their own."""

import gc
import json
import logging
import os
import socket
import subprocess
import sys
import textwrap
import weakref
from urllib.request import Request, urlopen

import psutil
import pytest

import heapwatch
from heapwatch import lifecycle, stacks
from heapwatch.explain.findings import Explanation
from heapwatch.recording.file import read_explanation
from tests.exporters.exposed import get
from tests.exporters.standing_stack import StandingStack
from tests.support.unreadable_files import OF_ANOTHER_USER, UNREADABLE, others_file

PRELUDE = """
import json, multiprocessing, os, sys, threading, time, urllib.request
import heapwatch

def get(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as response:
        return response.read().decode()

def targets():
    return len([name for name in os.listdir(os.environ["HEAPWATCH_TARGETS_DIR"]) if name.endswith(".json")])

def threads():
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("heapwatch"))
"""


def run(tmp_path, code, expect=0):
    script = tmp_path / "trainer.py"
    script.write_text(PRELUDE + textwrap.dedent(code))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == expect, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout else None


def left_over(tmp_path):
    return list((tmp_path / "targets").glob("*.json"))


def test_a_forked_worker_is_inert_and_the_trainer_continues(tmp_path):
    found = run(
        tmp_path,
        """
        watch = heapwatch.start(port=0, interval=0.01)
        watch.entities("food_sources", lambda: 1)
        ticket = None
        with watch.phase("outer"):
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                with watch.phase("train"):
                    ballast = bytearray(b"x") * 100_000_000
                for _ in range(1000):
                    watch.step()
                watch.progress("generation")
                told = {"threads": threads(), "server": watch.server is None, "port": watch.port}
                watch.stop()
                os.write(writer, json.dumps(told).encode())
                sys.exit(0)
            os.waitpid(child, 0)
        told = json.loads(os.read(reader, 1000))
        watch.step()
        text = get(watch.port)
        told["targets"] = targets()
        told["entities"] = 'trainer_entities{type="food_sources"} 1.0' in text
        told["steps"] = 'trainer_progress_total{unit="step"} 1.0' in text
        print(json.dumps(told))
        """,
    )
    assert found == {
        "threads": [],
        "server": True,
        "port": None,
        "targets": 1,
        "entities": True,
        "steps": True,
    }
    assert not left_over(tmp_path)


def test_a_fork_that_outlives_the_trainer_frees_its_port(tmp_path):
    run(
        tmp_path,
        """
        watch = heapwatch.start(port=0)
        port = watch.port
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        watch.stop()
        assert heapwatch.start(port=port).port == port
        """,
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_workers(tmp_path, method):
    found = run(
        tmp_path,
        f"""
        watch = heapwatch.start(port=0)  # on purpose outside the guard: spawned workers run this line too

        def work(number):
            watch.step()
            with watch.phase("work"):
                return [threads(), watch.port]

        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                told = pool.map(work, range(4))
                text = get(watch.port)
            print(json.dumps([told, 'trainer_processes{{role="worker"}}' in text, targets()]))
        """,
    )
    reported, scraped, targets = found
    assert reported == [[[], None]] * 4
    assert scraped
    assert targets == 1
    assert not left_over(tmp_path)


def test_a_worker_may_have_an_exporter_of_its_own(tmp_path):
    found = run(
        tmp_path,
        """
        watch = heapwatch.start("trainer", port=0)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            with heapwatch.start("trainer", port=0) as own:
                own.step()
                stepped = 'unit="step"} 1.0' in get(own.port)
                os.write(writer, json.dumps([own.port, stepped, targets()]).encode())
            os._exit(0)
        os.waitpid(child, 0)
        port, stepped, count = json.loads(os.read(reader, 1000))
        print(json.dumps([port != watch.port, stepped, count, targets()]))
        """,
    )
    assert found == [True, True, 2, 1]


def test_a_watch_that_was_stopped_is_forgotten_whatever_its_name():
    with heapwatch.start("one", port=0) as one:
        assert lifecycle.running() == [one]
    assert lifecycle.running() == []
    stopped = weakref.ref(one)
    del one
    with heapwatch.start("other", port=0):
        gc.collect()
        assert stopped() is None


def test_os_exit_ends_at_once_and_the_next_start_sweeps_what_was_left(tmp_path):
    run(tmp_path, "heapwatch.start(port=0); os._exit(3)", expect=3)
    assert len(left_over(tmp_path)) == 1
    run(tmp_path, "heapwatch.start(port=0).stop()")
    assert not left_over(tmp_path)


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("pass", 0),
        ("sys.exit(4)", 4),
        ("raise KeyboardInterrupt", -2),
        ("1 / 0", 1),
        ("threading.Thread(target=lambda: time.sleep(0.2)).start()", 0),
    ],
)
def test_an_end_without_stop_leaves_nothing(tmp_path, ending, status):
    run(tmp_path, f"watch = heapwatch.start(port=0); watch.step()\n{ending}", expect=status)
    assert not left_over(tmp_path)


@pytest.mark.slow
def test_forks_at_any_moment_never_hang_the_child(tmp_path):
    found = run(
        tmp_path,
        """
        watch = heapwatch.start(port=0, interval=0.001, budget=1.0)
        for number in range(20):
            watch.entities(f"food {number}", lambda: [None] * 1000)
        stop = threading.Event()
        def scrape():
            while not stop.is_set():
                watch._exporter.snapshots.take(30).families
        scraper = threading.Thread(target=scrape, daemon=True)
        scraper.start()
        ended = 0
        for _ in range(60):
            watch.step()
            child = os.fork()
            if child == 0:
                watch.step()
                with watch.phase("worker"):
                    watch.progress("episode")
                watch.stop()
                os._exit(0)
            ended += os.waitpid(child, 0)[1] == 0
        stop.set()
        print(json.dumps(ended))
        """,
    )
    assert found == 60


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
        assert watch._exporter.registration.folder == tmp_path / "targets"
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
        watch._exporter.registration.refresh()
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
        assert watch._exporter.is_running
    assert not watch._exporter.is_running
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
        explainer = watch._exporter.explainer
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
        explainer = watch._exporter.explainer
        explainer._recent.append((5e12, Explanation("leak", explainer.latest.seconds, 0.0, 0.0)))
    assert read_explanation(tmp_path / "run")["verdict"] == "leak"
    assert "mine has ended: leak" in caplog.text
