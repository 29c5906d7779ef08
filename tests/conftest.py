"""For every test: what `make tools` fetched is found before what the machine has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    fetched = Path(os.environ.get("HEAPWATCH_STATE") or REPOSITORY / ".heapwatch") / "bin"
    os.environ["PATH"] = os.pathsep.join([str(fetched), os.environ["PATH"]])
