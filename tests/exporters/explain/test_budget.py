from __future__ import annotations

import pytest

from heapwatch.explain.budget import LOAN_SECONDS, SHARE, START_SECONDS, Budget


def spent_after(seconds: float, *, lend_at: float = float("inf"), share: float = SHARE) -> float:
    """CPU seconds that work which never ends gets, in slices of a millisecond."""
    now = [0.0]
    budget = Budget(lambda: now[0], share)
    while now[0] < seconds:
        now[0] += 0.1
        if now[0] >= lend_at:
            budget.lend()
        if budget.allows():
            budget.charge(0.001)
    return budget.spent


@pytest.mark.parametrize("seconds", [10.0, 60.0, 300.0, 3600.0])
def test_any_run_costs_its_share_and_a_little_ahead(seconds: float) -> None:
    assert spent_after(seconds) <= START_SECONDS + SHARE * seconds + 0.001
    assert spent_after(seconds) <= 0.01 * seconds


def test_a_loan_is_paid_back_within_the_hour() -> None:
    assert spent_after(120.0, lend_at=60.0) > START_SECONDS + SHARE * 120 + LOAN_SECONDS / 2
    assert spent_after(3700.0, lend_at=60.0) <= SHARE * 3700 + 0.001


@pytest.mark.parametrize("share", [SHARE / 20, SHARE / 2])
def test_a_smaller_share_has_a_smaller_advance(share: float) -> None:
    assert spent_after(3700.0, lend_at=60.0, share=share) <= share * 3700 + 0.001
    assert 0 < spent_after(60.0, share=share) <= share / SHARE * START_SECONDS + share * 60 + 0.001


def test_what_took_longer_than_planned_is_waited_for() -> None:
    now = [0.0]
    budget = Budget(lambda: now[0])
    budget.charge(1.0)
    now[0] = 400.0
    assert not budget.allows()
    now[0] = 600.0
    assert budget.allows()
