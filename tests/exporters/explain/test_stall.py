from __future__ import annotations

import gc
import sys

import pytest

from heapwatch.explain import stall as subject
from heapwatch.explain.stall import STALL_SECONDS, VARIABLE, Stall, allowed_seconds


@pytest.mark.parametrize(("text", "seconds"), [("", STALL_SECONDS), ("0", 0.0), ("150", 0.15)])
def test_the_time_allowed_is_a_setting(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float) -> None:
    monkeypatch.setenv(VARIABLE, text)
    assert allowed_seconds() == seconds


@pytest.mark.parametrize("text", ["much", "-5", "1.5", "\u0661", "60001", "1" * 5000])
def test_a_wrong_setting_is_named_with_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    monkeypatch.setenv(VARIABLE, text)
    assert allowed_seconds() == STALL_SECONDS
    assert f"{VARIABLE} is '{text[:40]}" in caplog.text
    assert "allowed is a whole number of milliseconds, 0 to 60000; 20 is used" in caplog.text
    assert len(caplog.text) < 300


def test_each_list_predicts_the_next_of_its_sort(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 0.010, 1.0, 1.040, 2.0, 2.020])
    monkeypatch.setattr(subject, "own_time", lambda: next(times))
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: 1_000_000)
    stall = Stall(0.03)
    first = stall.predicted("objects")
    assert first > stall.predicted("types") > 0
    stall.timed(list, "types")
    assert stall.predicted("types") == pytest.approx(0.010)
    assert 0.010 < stall.predicted("objects") < first
    stall.timed(list, "objects")
    assert stall.predicted("objects") == pytest.approx(0.040)
    assert stall.allows("types")
    assert not stall.allows("objects")
    stall.timed(list)
    assert stall.predicted("objects") == pytest.approx(0.040), "no list of all objects"
    assert stall.longest == pytest.approx(0.040)


def test_young_objects_are_allowed_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "get_count", lambda: (600, 9, 3))
    monkeypatch.setattr(gc, "get_threshold", lambda: (700, 10, 10))
    assert Stall(0.02).allows_young(0)
    assert Stall(0.02).allows_young(1)
    monkeypatch.setattr(gc, "get_threshold", lambda: (100_000, 10, 10))
    assert not Stall(0.02).allows_young(1)
    monkeypatch.setattr(gc, "get_count", lambda: (900_000, 0, 0))
    assert not Stall(0.02).allows_young(0)
