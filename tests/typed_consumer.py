"""A project that uses the package, read by mypy and pyright: what is wrong in it is found, and no more.

python -m tests.typed_consumer PYTHON

PYTHON has the package. `basedpyright` brings pyright's engine with the node that it needs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

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

freed: heapwatch.CleanupResult = watch.cleanup()
largest: list[heapwatch.Large] = watch.large_objects()
taken: heapwatch.Checkpoint | None = watch.checkpoint("end")
grown: heapwatch.CheckpointGrowth = watch.growth_since("end")
phase: heapwatch.Phase = watch.phase("update")
version: str = heapwatch.__version__
trim("regular")
trim(7)
heapwatch.start(7)
watch.steps()
"""
WRONG = [21, 22, 23]
MYPY = ["--strict", "--follow-imports=silent", "--config-file=", "--cache-dir=cache"]


def found_by_mypy(
    folder: Path, options: Sequence[str] = (), environment: Mapping[str, str] = os.environ
) -> list[int]:
    """The lines in which mypy finds an error."""
    reported = _told(folder, [sys.executable, "-m", "mypy", *MYPY, *options, "consumer.py"], environment)
    return [int(line) for line in re.findall(r"^consumer\.py:(\d+).*: error: ", reported, re.MULTILINE)]


def found_by_pyright(folder: Path, python: str) -> list[int]:
    """The lines in which pyright's standard mode finds an error."""
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    reported = _told(
        folder, ["basedpyright", "--outputjson", "--pythonpath", python, "consumer.py"], os.environ
    )
    found = json.loads(reported)["generalDiagnostics"]
    return [one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"]


def _told(folder: Path, command: Sequence[str], environment: Mapping[str, str]) -> str:
    (folder / "consumer.py").write_text(CONSUMER)
    done = subprocess.run(
        command, cwd=folder, env=dict(environment), capture_output=True, text=True, timeout=150, check=False
    )
    if done.returncode != 1:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def main() -> int:
    """Returns 1 where one of the two finds something else."""
    python = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "mypy": found_by_mypy(Path(folder), [f"--python-executable={python}"]),
            "pyright": found_by_pyright(Path(folder), python),
        }
    print("; ".join(f"{name}: errors in lines {lines}, expected {WRONG}" for name, lines in found.items()))
    return 0 if all(lines == WRONG for lines in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
