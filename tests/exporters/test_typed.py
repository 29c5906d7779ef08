"""The package is typed for those who import it: mypy reads it as another project's strict check does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import heapwatch
from tests.typed_consumer import WRONG, found_by_mypy

pytestmark = pytest.mark.slow

pytest.importorskip("mypy", reason="mypy is not installed")


def test_a_consumer_is_checked_against_the_package(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    package = Path(heapwatch.__file__).parent
    assert (package / "py.typed").is_file()
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    assert pytestconfig.cache is not None
    kept = f"--cache-dir={pytestconfig.cache.mkdir('mypy')}"  # a second run takes a second
    assert found_by_mypy(tmp_path, [kept], environment) == WRONG
