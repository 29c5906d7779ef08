"""One history and one Prometheus for all tests of the dashboards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboards.backfill import build_tsdb
from tests.dashboards.server import prometheus


@pytest.fixture(scope="session")
def prometheus_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus with six hours of made-up history."""
    data: Path = tmp_path_factory.mktemp("tsdb")
    build_tsdb(data, hours=6)
    with prometheus(data) as url:
        yield url
