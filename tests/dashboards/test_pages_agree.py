"""Whatever two panels both answer, they answer alike, also within an evaluation of the rules."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heapwatch_dashboards.colors import CODES, VERDICTS
from heapwatch_dashboards.queries import trainers
from tests.dashboards.asking import ask, asked, column, panel, run, values
from tests.dashboards.backfill import build_tsdb
from tests.dashboards.documents import DOCUMENTS, Target, expressions, panels
from tests.dashboards.series import Clock, Series
from tests.dashboards.server import prometheus
from tests.dashboards.test_what_pages_say import HOST, HOURS, ended, fleet, killed, leaking, level, young
from tests.dashboards.trainers import Trainer

pytestmark = pytest.mark.slow

TABLE = ("fleet", "Trainers by verdict")


def _trainer(clock: Clock, name: str, state: int, **options: Any) -> Trainer:
    one = Trainer(clock, f"{name}:7777", "ppo", "torch", **options)
    one.memory(1e9, HOST)
    one.limits()
    one.verdicts((0, state))
    return one


def late(clock: Clock) -> list[Series]:
    """An alert fires that the recorded state does not know yet."""
    one = _trainer(clock, "late", 1)
    one.says((0, "healthy"))
    one.alert("TrainerLimitExceeded", "warning", "threshold", "memory", "trainer", 10)
    return one.series


def over(clock: Clock) -> list[Series]:
    """An alert has ended that the recorded state still knows."""
    one = _trainer(clock, "over", 3)
    one.says((0, "healthy"))
    one.alert("TrainerLimitExceeded", "warning", "threshold", "memory", "trainer", 10, clock.minutes - 10)
    return one.series


def growing(clock: Clock) -> list[Series]:
    """The explanation alone says that it grows."""
    one = _trainer(clock, "growing", 1)
    one.says((0, "growing"))
    return one.series


def too_large(clock: Clock) -> list[Series]:
    """Its buffer will not fit, as the explanation says."""
    one = _trainer(clock, "too-large", 1)
    one.says((0, "will not fit"))
    return one.series


def sure(clock: Clock) -> list[Series]:
    """Five minutes old, and its explanation knows already."""
    one = _trainer(clock, "sure", 0, started=clock.minutes - 5)
    one.says((clock.minutes - 5, "healthy"))
    return one.series


def gone(clock: Clock) -> list[Series]:
    """It ended while its explanation said that it leaked, and an alert fired."""
    lives = (0.0, clock.minutes - 30)
    one = _trainer(clock, "gone", 1, lives=lives)
    one.says((0, "leak"))
    one.alert("TrainerLimitExceeded", "warning", "threshold", "memory", "trainer", 10, lives[1])
    one.lives = (0.0, float("inf"))  # an average of what it was
    one.alert("TrainerScrapeSlow", "warning", "health", "exporter", "scrape", 10)
    one.lives = lives
    labels = {"path": "history", "type": "list", "kind": "container"}
    one.add("trainer_object_size_bytes", 1e6, object="weights")
    one.add("trainer_growing_path_bytes", 1e6, **labels)
    for suffix, value in (("duration_seconds_sum", 4.0), ("duration_seconds_count", 2.0)):
        one.count(f"trainer_phase_{suffix}", lambda m, v=value: v * m, phase="rollout")
    one.add("trainer_phase_end_resident_memory_bytes", 1e9, phase="rollout")
    return one.series


def forked(clock: Clock) -> list[Series]:
    """Workers share its memory; a list of tensors on a GPU, and its own level, are as much and more."""
    one = Trainer(clock, "forked:7777", "ppo", "torch")
    held = one.memory(1e9, HOST, workers=5e7)
    shared = next(
        series
        for series in one.series
        if series.name == "trainer_process_resident_memory_bytes" and series.labels["role"] == "worker"
    )
    one.series[one.series.index(shared)] = shared._replace(values=[4e9 for _ in shared.values])
    one.limits()
    one.verdicts((0, 1))
    one.says((0, "leak"))
    one.explained({"weights": [3e8 for _ in held]})
    for path, kind, nbytes in (("tensors", "container", 3e9), ("memory trainer", "level", 1e9)):
        labels = {"path": path, "type": path, "kind": kind}
        one.add("trainer_growing_path_bytes", nbytes, **labels)
        one.add("trainer_growing_path_leak", 1, **labels, site="", remedy="")
        one.add("trainer_growing_path_growth_bytes_per_minute", 1e7, **labels)
    one.cleanups([(20, 123_456_789), (40, 234_567_891)], "bodies", 3)
    # It did not answer for ten minutes.
    gap = range(int(60 * 60 / clock.step), int(70 * 60 / clock.step))
    one.series = [
        series._replace(values=[None if at in gap else value for at, value in enumerate(series.values)])
        if series.name.startswith("trainer_cleanup")
        else series
        for series in one.series
    ]
    return one.series


def again(clock: Clock) -> list[Series]:
    """Another process at the address of one that leaked at the same path, and had an alert."""
    one = _trainer(clock, "again", 1, started=clock.minutes - 20)
    one.says((0, "leak"))
    labels = {"path": "history", "type": "list", "kind": "container"}
    one.add("trainer_growing_path_growth_bytes_per_minute", 1e7, **labels)
    one.add("trainer_growing_path_leak", 1, **labels, site="", remedy="")
    one.alert("TrainerLimitExceeded", "warning", "threshold", "memory", "trainer", 10, 40)
    return one.series


def watchdog(clock: Clock) -> list[Series]:
    """The alert that always fires, and is no trainer's."""
    labels = {"alertname": "Watchdog", "severity": "warning", "kind": "health", "alertstate": "firing"}
    return [Series("ALERTS", {**labels, "resource": "stack", "component": "watchdog"}, clock.each(1))]


SCENARIOS = (
    *(leaking, level, killed, young, ended, fleet),
    *(late, over, growing, too_large, sure, gone, forked, again, watchdog),
)
HERE = ["again", "forked", "growing", "killed", "late", "leaking", "level", "over", "sure", "too-large"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus with an hour and a half of them."""
    data: Path = tmp_path_factory.mktemp("agreement")
    build_tsdb(data, HOURS, scenarios=SCENARIOS)
    with prometheus(data) as address:
        yield address


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


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("late", "over a limit"),
        ("over", "healthy"),
        ("growing", "growing"),
        ("too-large", "will not fit"),
        ("sure", "healthy"),
        ("forked", "leak"),
        ("killed", "down or stalled"),
    ],
)
def test_the_verdict_is_that_of_alerts_and_explanation(
    name: str, word: str, verdicts: dict[str, float]
) -> None:
    assert VERDICTS[verdicts[name]][0] == word


def test_the_last_verdict_is_the_one_that_was_shown(url: str) -> None:
    last = by_instance(column(url, "fleet", "Ended in this range", "Last verdict"))
    assert last["gone"] == CODES["leak"]


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


def test_what_was_removed_before_a_gap_in_the_scrapes_counts_once(url: str) -> None:
    assert sum(values(asked(url, "alerts", "Removed by cleanups"))) == 2 * 3


GROWS = ("trainer", "What grows, where, and what to do")


def test_growth_is_that_of_the_explanation(url: str) -> None:
    assert set(values(column(url, *GROWS, "Bytes/min", "forked:7777"))) == {1e7}


def test_nothing_grows_since_before_its_process(url: str) -> None:
    (since,) = values(column(url, *GROWS, "Since", "again:7777"))
    (started,) = ask(url, "query", query='job:trainer_process:start{instance="again:7777"}', time=time.time())
    assert since == 1000 * float(started["value"][1])


WITH_TRAINERS = [
    (uid, one)
    for uid, document in DOCUMENTS.items()
    for one in panels(document)
    if one["type"] == "table"
    and "trainer_name" in one["transformations"][-1]["options"].get("renameByName", {})
]


@pytest.mark.parametrize(
    ("uid", "shown"), WITH_TRAINERS, ids=[f"{uid} {one['title']}" for uid, one in WITH_TRAINERS]
)
def test_a_row_names_its_trainer(uid: str, shown: dict[str, Any], url: str) -> None:
    found = [
        one["metric"] for target in shown["targets"] for one in run(url, Target(uid, shown, target), HOURS)
    ]
    named = {one["instance"] for one in found if "trainer_name" in one}
    assert {one["instance"] for one in found} <= named


def test_the_recorded_state_is_read_in_one_place() -> None:
    """It is as old as the last evaluation; the verdict has of it what nothing newer says."""
    state = "job:trainer_verdict:state"
    for where, expression in expressions():
        explained = expression.replace("last_over_time(trainer_memory_verdict", "")
        assert "trainer_memory_verdict" not in explained, f"{where}: a missed scrape is not bridged"
        rest = expression.replace(trainers.WORST, "")
        rest = rest.replace(f"on (job, instance) {trainers._STATE} > 0", "")
        rest = rest.replace(f"{trainers._STATE} > bool 0", "")
        assert state not in rest, where
