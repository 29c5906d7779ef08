"""An explanation as a job of continuous integration needs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from heapwatch.cli import results
from heapwatch.cli.explain import _Result
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.explain.sites import Site
from tests.support.repository import REPOSITORY


def explanation(verdict="leak", path="agent.history", file="train.py", **changes):
    found = Finding(
        "container", path, "list of dict", 5035, 122_000_000, 9000.0, 146e6, 0.97,
        site=Site(os.path.abspath(file), 16, "Agent.learn"), is_leak=verdict == "leak", **changes,
    )  # fmt: skip
    return Explanation(verdict, 61.5, 151e6, 0.97, (found,))


@pytest.mark.parametrize(
    ("verdict", "fail_on", "fails"),
    [
        ("leak", None, True),
        ("will not fit", None, True),
        ("growing", None, False),
        ("growing", "growing", True),
        ("will not fit", "leak", False),
        ("leak", "will not fit", True),
        ("too early", "growing", False),
    ],
)
def test_which_verdict_fails(verdict, fail_on, fails):
    assert results.fails(verdict, fail_on) is fails


def test_markdown_keeps_its_table():
    lines = results.markdown(explanation(path="a|<img>")).splitlines()
    assert lines[-1] == "| a\\|&lt;img&gt; | list of dict | 5,035 | 122 MB | +146 MB | train.py:16 |"


def test_only_a_job_of_github_gets_annotations(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert results.told_to_actions(explanation(), "leak") == []
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    (line,) = results.told_to_actions(explanation(path="100%\n::stop"), "leak")
    assert line.startswith("::error file=train.py,line=16,title=Heapwatch%3A leak::97%25 of it is `100%25\\n")
    assert "\n" not in line
    assert summary.read_text().startswith("### Heapwatch\n\nleak: ")


def test_explain_writes_what_it_is_asked_for(tmp_path, monkeypatch, run):
    monkeypatch.setattr("heapwatch.cli.explain._read", lambda _: _Result(explanation("growing")))
    files = [tmp_path / f"found{ending}" for ending in (".md", ".json")]
    words = [word for file in files for word in ("--output", file)]
    assert run("explain", "1", *words)[0] == 0
    assert run("explain", "1", "--fail-on", "growing")[0] == 2
    assert all(file.stat().st_size > 50 for file in files)
    assert json.loads(files[1].read_text())["verdict"] == "growing"
    code, _, errors = run("explain", "1", "--output", tmp_path / "missing" / "found.md")
    assert code == 64
    assert "no folder that can be written" in errors  # before anything is entered or run
    assert run("run", "--output", tmp_path / "missing" / "found.md", "train.py")[0] == 64
    assert run("explain", "1", "--output", "found.txt")[0] == 64


PROGRAM = """
import sys, time
from heapwatch.explain.engine import Explainer
from heapwatch.explain.findings import Explanation
Explainer.conclude = lambda *_: Explanation(sys.argv[1], 61.0, 1e6, 1.0)
"""


def finished(folder, command, **environment):
    """A command that has ended in this folder."""
    variables = os.environ | environment
    return subprocess.run(command, cwd=folder, env=variables, timeout=120, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("verdict", "code", "slow"), [("leak", 2, False), ("leak", 2, True), ("warm-up", 0, True)]
)
def test_run_ends_as_its_verdict_says(verdict, code, slow, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM + ("time.sleep(60)\n" if slow else ""))
    command = ["run", "--seconds", "1", "--fail-on", "leak", "--output", "found.json", "train.py", verdict]
    heapwatch = [sys.executable, "-m", "heapwatch.cli.main"]
    done = finished(tmp_path, [*heapwatch, *command], GITHUB_ACTIONS="")
    assert done.returncode == code, done.stderr
    assert json.loads((tmp_path / "found.json").read_text())["verdict"] == verdict


TESTS = """
import pytest

@pytest.mark.no_leak
def test_update():
    assert 1 == 2

def test_other():
    raise RuntimeError
"""


def action(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The last step of the action, as a job runs it."""
    steps = yaml.safe_load((REPOSITORY / "action.yml").read_text())["runs"]["steps"]
    scripts = folder / "bin"
    scripts.mkdir(exist_ok=True)
    (scripts / "heapwatch").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m heapwatch.cli.main "$@"\n')
    (scripts / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    for script in scripts.iterdir():
        script.chmod(0o755)
    variables = dict.fromkeys(steps[-1]["env"], "") | {
        "RESULTS": "results",
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    return finished(folder, ["bash", "-e", "-o", "pipefail", "-c", steps[-1]["run"]], **variables | inputs)


@pytest.mark.slow
def test_the_action_runs_marked_tests(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    done = action(tmp_path, TESTS="test_it.py -p no:cacheprovider")
    assert done.returncode == 1, done.stdout + done.stderr
    suite = ElementTree.parse(tmp_path / "results" / "heapwatch.xml").find("testsuite")
    assert [case.attrib["name"] for case in suite] == ["test_update"]


def test_the_action_runs_a_program_and_wants_that_or_tests(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    done = action(tmp_path, PROGRAM="train.py leak", LIMIT_SECONDS="60", FAIL_ON="leak")
    assert done.returncode == 2, done.stderr
    assert (tmp_path / "summary.md").read_text().startswith("### Heapwatch\n\nleak")
    assert [file.name for file in (tmp_path / "results").iterdir()] == ["heapwatch.json"]
    done = action(tmp_path)
    assert (done.returncode, done.stdout) == (64, "::error title=Heapwatch::give either tests or program\n")
