#!/usr/bin/env python3
"""The walker's monitor by its old name: `heapwatch monitor` with the same options."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

CLONE = Path(__file__).resolve().parent.parent


def run_in_its_environment(problem: ImportError) -> NoReturn:
    """Run this again with the Python that `make` has set up; end with a line where there is none."""
    states = [Path(os.environ.get("HEAPWATCH_STATE") or CLONE / ".heapwatch"), CLONE / ".heapwatch"]
    environments = [(state / "venv").resolve() for state in states]
    if Path(sys.prefix).resolve() not in environments:  # else it would run itself for ever
        for python in (str(environment / "bin" / "python") for environment in environments):
            if os.access(python, os.X_OK):
                os.execv(python, [python, *sys.argv])
    how = f"run `make venv` in {CLONE}, or `pip install {CLONE}`"
    sys.exit(f"{Path(__file__).name}: this Python has no heapwatch ({problem}): {how}")


if __name__ == "__main__":
    try:
        from heapwatch.cli.main import main
    except ImportError as problem:
        run_in_its_environment(problem)
    sys.exit(main(["monitor", *sys.argv[1:]]))
