"""`heapwatch run` as a person starts it: real programs in processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from heapwatch import lost
from tests.support.ports import free_ports
from tests.support.repository import REPOSITORY

pytestmark = pytest.mark.slow

TUTORIAL = REPOSITORY / "docs" / "tutorial"
HEAPWATCH = [sys.executable, "-m", "heapwatch.cli.main"]


def heapwatch(*arguments: str, cwd: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HEAPWATCH, *arguments], cwd=cwd, env=state(cwd), capture_output=True, text=True, timeout=timeout
    )


def state(folder: Path) -> dict[str, str]:
    return {**os.environ, "HEAPWATCH_STATE": str(folder)}


def verdict(done: subprocess.CompletedProcess[str], before: str = "") -> str:
    """The verdict of the JSON that is printed last, after this output of the program."""
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{before}{{\n")
    found: str = json.loads(done.stdout.removeprefix(before))["verdict"]
    return found


def script(folder: Path, text: str, name: str = "train.py") -> str:
    (folder / name).write_text(text)
    return name


@pytest.fixture(scope="module", autouse=True)
def leaking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The tutorial's program, which leaks for a minute, and its folder; the other tests run meanwhile."""
    folder = tmp_path_factory.mktemp("leaking")
    command = [
        *HEAPWATCH,
        "run",
        "--json",
        "--seconds",
        "60",
        "--record",
        "run.jsonl",
        str(TUTORIAL / "train.py"),
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    own = {name: value for name, value in state(folder).items() if name in ("PATH", "PYTHONPATH", "HOME")}
    with subprocess.Popen(
        command, cwd=folder, env=own | {"HEAPWATCH_STATE": str(folder)}, **pipes
    ) as process:
        yield process, folder
        process.kill()


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        ("raise ValueError(7)", ["ended by ValueError"]),
        ("import sys; sys.exit(7)", []),
        ("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", []),
        (
            "import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
            ["ended by SIGTERM"],
        ),
    ],
)
def test_a_program_that_fails_is_kept_as_lost(tmp_path: Path, text: str, causes: list[str]) -> None:
    heapwatch("run", script(tmp_path, text), cwd=tmp_path)
    kept = lost.read(tmp_path / "targets" / lost.FOLDER)
    assert [(one.trainer, one.cause) for one in kept] == [("train", cause) for cause in causes]
    assert list((tmp_path / "targets").glob("*.json")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_a_signal_ends_is_explained(tmp_path: Path, number: int) -> None:
    text = """
import sys, time
def train():
    history = []
    try:
        print("training", flush=True)
        while True:
            history.append(bytearray(1000))
            time.sleep(0.01)
    finally:
        print("cleaned up", flush=True)
train()
"""
    command = [*HEAPWATCH, "run", "--json", "--record", "run.jsonl", script(tmp_path, text)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=state(tmp_path), **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "training\n"
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == -number
    cleaned = "cleaned up\n" if number == signal.SIGINT else ""
    assert said.startswith(cleaned + "{")
    assert json.loads(said.removeprefix(cleaned))["verdict"] == "too early"
    assert '"explanation"' in (tmp_path / "run.jsonl").read_text().splitlines()[-1]


def test_time_is_up_lets_the_program_clean_up(tmp_path: Path) -> None:
    text = """
import time
try:
    time.sleep(100)
finally:
    print("closed", flush=True)
"""
    done = heapwatch("run", "--json", "--seconds", "2", script(tmp_path, text), cwd=tmp_path)
    assert verdict(done, "closed\n") == "too early"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run",), "needs a script"),
        (("run", "nowhere.py"), "cannot open 'nowhere.py'"),
        (("run", "-m"), "needs a script"),
        (("run", "-I", "x.py"), "cannot open 'x.py'"),
        (("run", "-E", "-c", "1"), "-E keeps Heapwatch out of the program"),
        (("run", "--seconds", "-1", "x.py"), "not a number of seconds"),
    ],
)
def test_what_cannot_be_run_is_one_line(run: Any, arguments: tuple[str, ...], said: str) -> None:
    code, _, errors = run(*arguments)
    assert code == 64
    assert said in errors.splitlines()[-1]


def test_a_record_that_cannot_be_written_is_one_line_and_nothing_runs(tmp_path: Path) -> None:
    program = script(tmp_path, "open('it-ran', 'w')")
    done = heapwatch("run", "--record", str(tmp_path / "none" / "run.jsonl"), program, cwd=tmp_path)
    assert done.returncode == 64
    assert done.stderr == f"heapwatch: {tmp_path}/none/run.jsonl: No such file or directory\n"
    assert not (tmp_path / "it-ran").exists()


GO_ON = {
    "catches": "import time\nwhile True:\n    try:\n"
    "        time.sleep(60)\n    except BaseException:\n        pass",
    "thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(100,)).start()",
    "alarm": "import signal, time\nsignal.signal(signal.SIGALRM, print)\ntime.sleep(100)",
    "atexit": "import atexit, time\natexit.register(time.sleep, 100)",
    "child": "import subprocess, sys, time\n"
    "subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\ntime.sleep(100)",
    "lock": "import ctypes\nlock, mutex = ctypes.CDLL(None).pthread_mutex_lock, bytes(99)\n"
    "lock(mutex), lock(mutex)",
}


def test_programs_that_do_not_end_when_their_time_is_up(tmp_path: Path) -> None:
    """All at once: some are waited for."""

    def run(name: str) -> str:
        program = script(tmp_path, GO_ON[name], f"{name}.py")
        return verdict(heapwatch("run", "--json", "--seconds", "2", program, cwd=tmp_path))

    with ThreadPoolExecutor(len(GO_ON)) as pool:
        assert dict(zip(GO_ON, pool.map(run, GO_ON), strict=True)) == dict.fromkeys(GO_ON, "too early")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("http://127.0.0.1:1", ""),
        ("99999999", "there is no process"),
        ("nothing.jsonl.gz", "there is no file nothing.jsonl.gz"),
        pytest.param("a" * 5000, "no trainer is registered as aaa", id="a long name"),
        ("1", ""),
    ],
)
def test_where_there_is_nothing_to_explain(run: Any, source: str, said: str) -> None:
    code, _, errors = run("explain", source)
    assert code == 3
    assert said in errors
    assert len(errors.splitlines()) == 1


SERVED = "import heapwatch.lifecycle as l; print(next(iter(l._running.values())).port)"


def test_the_port_is_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("HEAPWATCH_TRAINER_PORT", str(port))
    name = script(tmp_path, SERVED)
    assert heapwatch("run", name, cwd=tmp_path).stdout == f"{port}\n"
    assert heapwatch("run", "--port", "0", name, cwd=tmp_path).stdout != f"{port}\n"


@pytest.mark.parametrize(
    ("variable", "value", "refused"),
    [
        ("TRAINER_PORT", "http", "HEAPWATCH_TRAINER_PORT must be a port, 0 to 65535, got 'http'"),
        ("TRACES", "0", "nothing reads HEAPWATCH_TRACES; did you mean HEAPWATCH_TRACE? (or unset it)"),
    ],
)
def test_a_wrong_variable_is_refused_before_the_program_runs(
    variable: str, value: str, refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    monkeypatch.setenv(f"HEAPWATCH_{variable}", value)
    assert run("run", tmp_path / script(tmp_path, "print(1)")) == (64, "", f"heapwatch: {refused}\n")


def test_a_quiet_run_says_nothing_of_its_own_and_one_without_an_explainer_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = script(tmp_path, "print(1)")
    done = heapwatch("run", "--quiet", name, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    monkeypatch.setenv("HEAPWATCH_TRACE", "much")
    warned = heapwatch("run", "--quiet", name, cwd=tmp_path).stderr
    assert warned.startswith("heapwatch: HEAPWATCH_TRACE is 'much'")
    assert warned.count("\n") == 1
    monkeypatch.setenv("HEAPWATCH_EXPLAIN", "off")
    done = heapwatch("run", name, cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == "heapwatch: HEAPWATCH_EXPLAIN is off: what grows is not known"


@pytest.mark.timeout(240)
def test_a_leak_is_named_as_the_tutorial_says_recorded_and_explained_again(
    leaking: tuple[subprocess.Popen[str], Path],
) -> None:
    page = TUTORIAL.with_suffix(".md").read_text()
    path, line = re.search(r"`(train\(\)\S+)` .*?train\.py:(\d+)", page, re.DOTALL).groups()
    process, folder = leaking
    said, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    found = json.loads(said)
    first = found["findings"][0]
    assert (found["verdict"], first["path"], first["site"]["line"]) == ("leak", path, int(line))
    assert found["explained_share"] > 0.7
    assert "history.append" in (TUTORIAL / "train.py").read_text().splitlines()[int(line) - 1]
    again = heapwatch("explain", "run.jsonl", "--json", cwd=folder)
    assert again.returncode == 2
    assert json.loads(again.stdout)["findings"][0]["path"] == path
