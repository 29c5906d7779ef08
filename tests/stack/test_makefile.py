from __future__ import annotations

import re
import subprocess

from tests.support.repository import REPOSITORY

EXPLAINED = re.compile(r"^([a-z-]+):.*?## (.+)$", re.MULTILINE)


def make(*arguments: str) -> str:
    done = subprocess.run(["make", *arguments], cwd=REPOSITORY, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_make_alone_lists_every_explained_target() -> None:
    shown = re.sub(r"\x1b\[\d+m", "", make())
    explained = EXPLAINED.findall((REPOSITORY / "Makefile").read_text())
    assert {"up", "down", "status", "logs", "restart", "clean", "demo", "test", "lint", "generate"} <= dict(
        explained
    ).keys()
    for target, text in explained:
        assert re.search(rf"\b{target}\s.*{re.escape(text)}", shown), target


def test_choices_reach_the_command() -> None:
    assert "restart --mode native --service receiver" in make(
        "-n", "restart", "MODE=native", "SERVICE=receiver"
    )
    assert "logs --mode auto" in make("-n", "logs")


def test_a_state_folder_with_a_space_reaches_the_command_whole() -> None:
    shown = make("-n", "up", "HEAPWATCH_STATE=/tmp/a später b")
    assert '"/tmp/a später b/venv"' in shown
    assert '"/tmp/a später b/venv/bin/python" -m heapwatch up' in shown
    recipes = (REPOSITORY / "Makefile").read_text()
    assert not re.findall(r"^\t.*(?<![\"/=\w])\$\((?:BIN|VENV|HEAPWATCH_STATE)\)", recipes, re.MULTILINE)
