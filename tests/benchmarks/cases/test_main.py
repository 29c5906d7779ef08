"""The driver: what one failure costs the other runs."""

from __future__ import annotations

import time
from concurrent.futures import Future

import pytest

from benchmarks.cases.__main__ import _pool


def test_after_a_failure_no_more_scripts_are_started() -> None:
    runs: list[Future[None]] = []

    def fail(pool_size: int) -> None:
        with _pool(pool_size) as pool:
            runs.extend(pool.submit(time.sleep, 0.2) for _ in range(5))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail(1)
    assert [run.cancelled() for run in runs[2:]] == [True, True, True]
