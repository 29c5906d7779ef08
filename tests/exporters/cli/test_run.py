"""`heapwatch run` as a person starts it: real programs in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from heapwatch import lost
from tests.ports import free_ports

LEAK = """
import time
class Trainer:
    def __init__(self):
        self.history = []
    def collect(self):
        self.history.append(bytearray(200_000))
trainer = Trainer()
while True:
    trainer.collect()
    time.sleep(0.02)
"""


def heapwatch(*arguments: str, cwd: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HEAPWATCH_TARGETS_DIR": str(cwd / "targets"), "HEAPWATCH_STATE": str(cwd)}
    return subprocess.run(
        [sys.executable, "-m", "heapwatch.cli.main", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def document(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout[done.stdout.index("\n{\n") if done.stdout[0] != "{" else 0 :])


def script(folder: Path, text: str, name: str = "train.py") -> str:
    (folder / name).write_text(text)
    return name


@pytest.mark.timeout(240)
def test_a_leak_is_named_recorded_and_explained_again(tmp_path: Path) -> None:
    done = heapwatch(
        "run", "--json", "--seconds", "50", "--record", "run.jsonl", script(tmp_path, LEAK), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = document(done)
    assert found["verdict"] == "leak"
    first = found["findings"][0]
    assert first["path"] == "trainer.history"
    assert first["site"]["line"] == 7
    assert found["explained_share"] > 0.7
    again = heapwatch("explain", "run.jsonl", "--json", cwd=tmp_path)
    assert again.returncode == 2
    assert json.loads(again.stdout)["findings"][0]["path"] == "trainer.history"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("", 0, ""),
        ("raise SystemExit(7)", 7, ""),
        ("import sys; sys.exit('no data')", 1, "no data"),
        ("raise ValueError('broken')", 1, "ValueError: broken"),
        ("import sys; sys.modules.clear()", 0, ""),
        ("import os; os._exit(5)", 5, ""),
    ],
)
def test_the_exit_code_is_the_programs(tmp_path: Path, text: str, code: int, said: str) -> None:
    done = heapwatch("run", script(tmp_path, text), cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "heapwatch/cli" not in done.stderr


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        ("", []),
        ("raise SystemExit(7)", ["exit status 7"]),
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


def test_a_program_sees_what_python_would_show_it(tmp_path: Path) -> None:
    text = """
import json, sys
print(json.dumps([__name__, sys.argv, sys.path[0], __file__, sys.modules["__main__"].__dict__ is globals()]))
"""
    shown = heapwatch("run", script(tmp_path, text), "--epochs", "3", cwd=tmp_path).stdout
    python = subprocess.run(
        [sys.executable, "train.py", "--epochs", "3"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(shown.splitlines()[0]) == json.loads(python)


def test_a_module_runs_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    script(tmp_path / "package", "", "__init__.py")
    script(tmp_path / "package", "import sys; print(__name__, __package__, sys.argv[1:])", "__main__.py")
    done = heapwatch("run", "-m", "package", "--own", "1", cwd=tmp_path)
    assert done.stdout.splitlines()[0] == "__main__ package ['--own', '1']"


def test_processes_are_spawned_as_from_any_script(tmp_path: Path) -> None:
    text = """
import multiprocessing
def work(queue):
    queue.put("done")
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(queue.get(timeout=60))
    process.join()
"""
    done = heapwatch("run", script(tmp_path, text), cwd=tmp_path)
    assert done.stdout.splitlines()[0] == "done", done.stderr


def test_a_forked_child_leaves_the_explanation_to_its_parent(tmp_path: Path) -> None:
    text = """
import os, sys
if os.fork() == 0:
    print("child", flush=True)
    sys.exit(0)
os.wait()
"""
    done = heapwatch("run", "--json", script(tmp_path, text), cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.count('"verdict"') == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_program_that_a_signal_ends_is_explained(tmp_path: Path, number: int, code: int) -> None:
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
    command = [sys.executable, "-m", "heapwatch.cli.main", "run", "--json", script(tmp_path, text)]
    environment = {**os.environ, "HEAPWATCH_TARGETS_DIR": str(tmp_path), "HEAPWATCH_STATE": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "training\n"
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert said.startswith("cleaned up\n{")
    assert json.loads(said.partition("\n")[2])["verdict"] == "too early"


def test_a_handler_of_the_programs_own_is_left_alone(tmp_path: Path) -> None:
    text = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: print("saving a checkpoint"))
os.kill(os.getpid(), signal.SIGTERM)
ready, say = os.pipe()
child = os.fork()
if not child:
    os.write(say, b"x")
    signal.pause()
os.read(ready, 1)
os.kill(child, signal.SIGINT)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
"""
    done = heapwatch("run", script(tmp_path, text), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("saving a checkpoint\n")


def test_time_is_up_lets_the_program_clean_up(tmp_path: Path) -> None:
    text = """
import time
try:
    time.sleep(100)
finally:
    print("closed", flush=True)
"""
    done = heapwatch("run", "--json", "--seconds", "2", script(tmp_path, text), cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("closed\n{")
    assert document(done)["verdict"] == "too early"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run",), "needs a script"),
        (("run", "nowhere.py"), "cannot open 'nowhere.py'"),
        (("run", "-m", "no_such_module_here"), "no module 'no_such_module_here'"),
        (("run", "--seconds", "-1", "x.py"), "not a number of seconds"),
    ],
)
def test_what_cannot_be_run_is_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = heapwatch(*arguments, cwd=tmp_path)
    assert done.returncode == 64
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_record_that_cannot_be_written_is_one_line_and_nothing_runs(tmp_path: Path) -> None:
    program = script(tmp_path, "open('it-ran', 'w')")
    done = heapwatch("run", "--record", str(tmp_path / "none" / "run.jsonl"), program, cwd=tmp_path)
    assert done.returncode == 64
    assert done.stderr == f"heapwatch: {tmp_path}/none/run.jsonl: No such file or directory\n"
    assert not (tmp_path / "it-ran").exists()


def test_a_script_that_does_not_compile_is_one_line(tmp_path: Path) -> None:
    done = heapwatch("run", script(tmp_path, "def"), cwd=tmp_path)
    assert done.returncode == 64
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("http://127.0.0.1:1", ""),
        ("99999999", "there is no process"),
        ("nothing.jsonl.gz", "there is no file nothing.jsonl.gz"),
        ("1", ""),
    ],
)
def test_where_there_is_nothing_to_explain(tmp_path: Path, source: str, said: str) -> None:
    done = heapwatch("explain", source, cwd=tmp_path)
    assert done.returncode == 3
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


SERVED = "import heapwatch.lifecycle as l; print(next(iter(l._running.values())).port)"


def test_the_port_is_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("HEAPWATCH_TRAINER_PORT", str(port))
    name = script(tmp_path, SERVED)
    assert heapwatch("run", name, cwd=tmp_path).stdout == f"{port}\n"
    assert heapwatch("run", "--port", "0", name, cwd=tmp_path).stdout != f"{port}\n"
    monkeypatch.setenv("HEAPWATCH_TRAINER_PORT", "http")
    refused = heapwatch("run", name, cwd=tmp_path)
    assert refused.returncode == 64
    assert refused.stderr == "heapwatch: HEAPWATCH_TRAINER_PORT must be a port, 0 to 65535, got 'http'\n"


def test_an_unknown_variable_is_refused_before_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEAPWATCH_TRACES", "0")
    done = heapwatch("run", script(tmp_path, "print(1)"), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (64, "")
    assert (
        done.stderr
        == "heapwatch: nothing reads HEAPWATCH_TRACES; did you mean HEAPWATCH_TRACE? (or unset it)\n"
    )


def test_a_quiet_run_says_nothing_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = script(tmp_path, "print(1)")
    done = heapwatch("run", "--quiet", name, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    monkeypatch.setenv("HEAPWATCH_STALL_MS", "much")
    warned = heapwatch("run", "--quiet", name, cwd=tmp_path).stderr
    assert warned.startswith("heapwatch: HEAPWATCH_STALL_MS is 'much'")
    assert warned.count("\n") == 1


def test_a_run_without_an_explainer_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEAPWATCH_EXPLAIN", "off")
    done = heapwatch("run", script(tmp_path, "print(1)"), cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == "heapwatch: HEAPWATCH_EXPLAIN is off: what grows is not known"
