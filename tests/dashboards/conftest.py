"""Made-up histories, each written once, and a Prometheus of each."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.dashboards.backfill import build_tsdb
from tests.dashboards.server import prometheus
from tests.dashboards.short_histories import HOURS, SHORT
from tests.dashboards.two_lives import lives


@contextmanager
def _serving(factory: pytest.TempPathFactory, name: str, **history: Any) -> Iterator[str]:
    """A Prometheus with a history that is written once for all workers of pytest-xdist."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            written = factory.mktemp(name)
            build_tsdb(written, **history)
            written.rename(folder)
    data = factory.mktemp("tsdb")
    shutil.copytree(folder, data, dirs_exist_ok=True)
    with prometheus(data) as url:
        yield url


@pytest.fixture(scope="session")
def prometheus_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus with six hours of `scenarios`."""
    with _serving(tmp_path_factory, "history", hours=6) as url:
        yield url


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus with the hour and a half of `short_histories`."""
    with _serving(tmp_path_factory, "short", hours=HOURS, scenarios=(*SHORT, lives)) as address:
        yield address
