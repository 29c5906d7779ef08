"""One history for all tests of the dashboards."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboards.backfill import build_tsdb
from tests.dashboards.server import prometheus


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six hours of made-up history, written once for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "history"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            written = tmp_path_factory.mktemp("history")
            build_tsdb(written, hours=6)
            written.rename(folder)
    return folder


@pytest.fixture(scope="session")
def prometheus_url(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus with that history."""
    data = tmp_path_factory.mktemp("tsdb")
    shutil.copytree(history, data, dirs_exist_ok=True)
    with prometheus(data) as url:
        yield url
