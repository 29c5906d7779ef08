"""The package is typed for those who import it: mypy reads it as another project's strict check does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import heapwatch

pytest.importorskip("mypy", reason="mypy is not installed")

CONSUMER = """
import heapwatch

watch = heapwatch.start("consumer", port=0)
watch.step()
port: int | None = watch.port
with watch.phase("update"):
    pass

@watch.on_cleanup
def trim(action: str) -> dict[str, int]:
    return {}

trim("regular")
trim(7)
heapwatch.start(7)
watch.steps()
"""


def test_a_consumer_is_checked_against_the_package(tmp_path: Path) -> None:
    package = Path(heapwatch.__file__).parent
    assert (package / "py.typed").is_file()
    (tmp_path / "consumer.py").write_text(CONSUMER)
    command = ["--strict", "--follow-imports=silent", "--config-file=", "--cache-dir=cache", "consumer.py"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *command],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(package.parent)},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    wrong = [line.split(":")[1] for line in done.stdout.splitlines() if ": error: " in line]
    assert wrong == ["15", "16", "17"], done.stdout + done.stderr
