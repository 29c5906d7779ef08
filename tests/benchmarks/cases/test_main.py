"""The driver: what one failure costs the other runs."""

from __future__ import annotations

import time
from concurrent.futures import Future

import pytest

from benchmarks.cases.__main__ import _growth, _pool
from benchmarks.cases.case import load_all


def test_after_a_failure_no_more_scripts_are_started() -> None:
    runs: list[Future[None]] = []

    def fail(pool_size: int) -> None:
        with _pool(pool_size) as pool:
            runs.extend(pool.submit(time.sleep, 0.2) for _ in range(5))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail(1)
    assert [run.cancelled() for run in runs[2:]] == [True, True, True]


def test_growth_that_was_not_measured_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    measured, failed = Future[float](), Future[float]()
    measured.set_result(2e6)
    failed.set_exception(RuntimeError("ended after 90 s"))
    case = load_all()[0]
    assert _growth(case, [measured, measured]) == (2e6, 2e6)
    assert _growth(case, []) is None
    assert _growth(case, [measured, failed]) is None
    assert f"{case.name}: growth without tools not measured: ended after 90 s" in capsys.readouterr().err
