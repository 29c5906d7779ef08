"""Whatever two panels both answer, they answer alike, also within an evaluation of the rules."""

from typing import Any

import pytest

from heapwatch_dashboards.colors import CODES, VERDICTS
from tests.dashboards.asking import asked, column, panel, values
from tests.dashboards.short_histories import HOST

pytestmark = pytest.mark.slow

TABLE = ("fleet", "Trainers by verdict")
GROWS = ("trainer", "What grows, where, and what to do")
HERE = [
    *("again", "forked", "growing", "killed", "late", "leaking", "level", "over", "sure", "too-large"),
    *("unjudged", "pending", "bound", "soon", "steps"),
]


def by_instance(answer: list[dict[str, Any]]) -> dict[str, float]:
    """The latest value of each instance."""
    return {
        one["metric"]["instance"].partition(":")[0]: float(one.get("values", [one.get("value")])[-1][1])
        for one in answer
    }


def lasts(answer: list[dict[str, Any]]) -> list[float]:
    """The latest value of each series."""
    return [float(one.get("values", [one.get("value")])[-1][1]) for one in answer]


@pytest.fixture(scope="module")
def verdicts(url: str) -> dict[str, float]:
    """The verdicts in Fleet's table."""
    return by_instance(column(url, *TABLE, "Verdict"))


@pytest.mark.parametrize("name", HERE)
def test_a_trainer_has_one_verdict(name: str, url: str, verdicts: dict[str, float]) -> None:
    of = f"{name}:7777"
    assert values(asked(url, "trainer", "Verdict", of=of)) == [verdicts[name]]
    assert lasts(asked(url, "trainer", "Verdict over time", of=of))[-1] == verdicts[name]


@pytest.mark.parametrize("name", HERE)
def test_no_row_is_worse_than_the_verdict(name: str, url: str, verdicts: dict[str, float]) -> None:
    rows = values(asked(url, "trainer", GROWS[1], of=f"{name}:7777"))
    assert max(rows, default=0) <= verdicts[name]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("late", "over a limit"),
        ("over", "healthy"),
        ("unjudged", "not judged"),
        ("growing", "growing"),
        ("too-large", "will not fit"),
        ("sure", "healthy"),
        ("forked", "leak"),
        ("killed", "down or stalled"),
        ("pending", "healthy"),
        ("bound", "leak"),
    ],
)
def test_the_verdict_is_that_of_alerts_and_explanation(
    name: str, word: str, verdicts: dict[str, float]
) -> None:
    assert VERDICTS[verdicts[name]][0] == word


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Leaking", ["leak"]),
        ("Over a limit", ["over a limit", "will not fit"]),
        ("Growing", ["growing"]),
        ("Down or stalled", ["down or stalled"]),
    ],
)
def test_a_count_of_fleet_is_that_of_its_rows(
    title: str, words: list[str], url: str, verdicts: dict[str, float]
) -> None:
    (counted,) = values(asked(url, "fleet", title))
    codes = [CODES[word] for word in words]
    assert counted >= sum(code in codes for code in verdicts.values()) > 0
    assert counted <= sum(code >= min(codes) for code in verdicts.values())


def test_alerts_are_counted_as_they_are_listed(url: str) -> None:
    (counted,) = values(asked(url, "alerts", "Firing"))
    assert counted == len(asked(url, "alerts", "Firing alerts")) > 0
    for name, number in by_instance(column(url, *TABLE, "Alerts")).items():
        assert number == len(asked(url, "trainer", "Firing alerts", of=f"{name}:7777")) > 0


def test_whatever_fired_is_among_the_alerts_in_range(url: str) -> None:
    drawn = {
        (one["metric"]["alertname"], one["metric"]["instance"], one["metric"]["trainer_name"])
        for one in asked(url, "alerts", "Alerts over time")
        if any(value == "2" for _, value in one["values"])
    }
    listed = {
        (one["metric"]["alertname"], one["metric"]["instance"], one["metric"]["trainer_name"])
        for one in asked(url, "alerts", "Alerts in range")
    }
    assert ("TrainerLimitExceeded", "gone:7777", "gone, 11-24 12:00") in listed
    assert ("TrainerLimitExceeded", "again:7777", "again, 11-24 10:00") in listed
    assert drawn == listed


@pytest.mark.parametrize("name", ["forked", "growing", "leaking", "level", "late"])
def test_the_bands_of_memory_add_up_to_the_memory(name: str, url: str) -> None:
    of = f"{name}:7777"
    shown = panel("trainer", "Memory explained")
    bands = [one["refId"] for one in shown["targets"] if "limit" not in one["legendFormat"]]
    stacked = sum(sum(lasts(asked(url, "trainer", shown["title"], ref, of))) for ref in bands)
    (memory,) = values(asked(url, "trainer", "Memory", of=of))
    assert stacked == pytest.approx(memory)
    (row,) = (one for one in by_instance(column(url, *TABLE, "Memory")).items() if one[0] == name)
    assert row[1] == memory
    (used,) = values(asked(url, "trainer", "Used of the limit", of=of))
    assert used == pytest.approx(memory / HOST)


@pytest.mark.parametrize(
    ("stat", "chart"), [("Cleanups in range", "Cleanups"), ("Freed in range", "Memory freed by cleanups")]
)
def test_a_number_of_the_range_is_the_sum_of_its_chart(stat: str, chart: str, url: str) -> None:
    (counted,) = values(asked(url, "alerts", stat))
    assert counted == sum(values(asked(url, "alerts", chart))) > 0
    if chart == "Memory freed by cleanups":
        assert values(asked(url, "trainer", "Freed by cleanups")) == [counted]


def test_growth_is_that_of_the_explanation(url: str) -> None:
    assert set(values(column(url, *GROWS, "Bytes/min", "forked:7777"))) == {1e7}


@pytest.mark.parametrize(("name", "rate"), [("soon", 60e6), ("steps", 5e6), ("forked", 0)])
def test_the_growth_of_a_trainer_is_one_on_every_page(name: str, rate: float, url: str) -> None:
    (shown,) = values(asked(url, "trainer", "Growth per minute", of=f"{name}:7777"))
    assert shown == pytest.approx(rate, rel=0.02)
    assert by_instance(column(url, *TABLE, "Per minute"))[name] == shown
