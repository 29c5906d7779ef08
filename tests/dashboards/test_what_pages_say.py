"""What the pages say of a leaking, a level and an ended trainer, and of a fleet on one machine, is so."""

import pytest

from heapwatch_dashboards.navigation import MACHINE, variables
from tests.dashboards.asking import ask, asked, column, panel, run, values
from tests.dashboards.documents import Target, interpolate
from tests.dashboards.short_histories import HOURS, REMEDY, SITE
from tests.dashboards.two_lives import AGES

pytestmark = pytest.mark.slow

GROWS = "What grows, where, and what to do"
EXPLAINED = "Memory explained"
# At whose address another process ran before.
TWICE = ("lives", "young", "sure", "again", *(f"again-{age}" for age in AGES))


@pytest.mark.parametrize(
    ("board", "title", "of", "said"),
    [
        ("fleet", "Leaking", ".+", [5]),  # leaking, forked, again, bound, node
        ("trainer", GROWS, "level:7777", []),
        # Of a killed trainer all is shown that was known last.
        ("trainer", "Memory", "killed:7777", [9e9]),
        ("trainer", "Used of the limit", "killed:7777", [0.9]),
        ("trainer", "Growth per minute", "killed:7777", [20e6]),
        ("trainer", "Verdict", "killed:7777", [5]),
        # The growth of a young one and its time left are those that it says.
        ("trainer", "Growth per minute", "young:7777", [50e6]),
        ("trainer", "Time left", "young:7777", [5400]),
        # What a machine has, and what it has not: the memory of a trainer.
        ("machine", "Verdict", "node:7790", [4]),
        ("machine", "Available", "node:7790", [16e9]),
        ("machine", "Used of the limit", "node:7790", [0.75]),
        ("machine", "Processes", "node:7790", [40]),
        ("machine", "Time left", "node:7790", [7200]),
        ("machine", "Kernel kills", "node:7790", [2]),
        ("phases", "Time of a cycle", "leaking:7777", [pytest.approx(60, rel=0.1)]),
    ],
)
def test_a_panel_says(url: str, board: str, title: str, of: str, said: list[float]) -> None:
    assert values(asked(url, board, title, of=of)) == said


def test_the_first_panel_says_what_leaks_where_how_fast_and_what_to_do(url: str) -> None:
    row, declared = sorted(
        asked(url, "trainer", GROWS, of="leaking:7777"),
        key=lambda one: one["metric"]["what"] != "loss_history",
    )
    reported = {name: row["metric"][name] for name in ("what", "type", "site", "remedy", "trainer_name")}
    assert reported == {
        "what": "loss_history",
        "type": "list of list",
        "site": SITE,
        "remedy": REMEDY,
        "trainer_name": "leaking, 11-24 12:00",
    }
    assert values([row]) == [4]
    assert declared["metric"]["what"] == "events losses"
    (rate,) = values(column(url, "trainer", GROWS, "Bytes/min", "leaking:7777"))
    assert rate == pytest.approx(20e6, rel=0.05)
    assert values(column(url, "trainer", GROWS, "Share", "leaking:7777")) == [
        1
    ]  # not one more for its second name


def test_a_leak_among_the_alerts_says_what_leaks_and_where(url: str) -> None:
    rows = [one["metric"] for one in asked(url, "alerts", "Firing alerts", of="leaking:7777")]
    assert {(row["alertname"], row.get("path"), row.get("site")) for row in rows} == {
        ("TrainerLeak", "loss_history", SITE),
        ("TrainerLeak", None, None),
        ("TrainerLimitExceeded", None, None),
    }


def test_memory_is_explained_by_the_same_path(url: str) -> None:
    shown = panel("trainer", EXPLAINED)
    refs = {target.get("legendFormat"): target["refId"] for target in shown["targets"]}
    (held,) = asked(url, "trainer", EXPLAINED, refs["{{path}}"], "leaking:7777")
    (rest,) = asked(url, "trainer", EXPLAINED, refs["unexplained"], "leaking:7777")
    assert held["metric"]["path"] == "loss_history"
    assert values([rest])[-1] < 0.1 * values([held])[-1]


def test_the_phase_that_gains_is_the_one_across_which_memory_rises(url: str) -> None:
    (found,) = asked(url, "phases", "Phase that gains most", of="leaking:7777")
    assert found["metric"]["phase"] == "rollout"


def test_growth_per_cycle_is_known_wherever_the_table_knows_it(url: str) -> None:
    (stat,) = values(asked(url, "phases", "Growth per cycle", of="leaking:7777"))
    rows = values(column(url, "phases", "Phases", "Per cycle", "leaking:7777"))
    assert stat == pytest.approx(max(rows), rel=0.2)
    assert stat == pytest.approx(20e6, rel=0.2)


def test_of_a_killed_trainer_all_is_shown_that_was_known_last(url: str) -> None:
    of = "killed:7777"
    (row,) = asked(url, "trainer", GROWS, of=of)
    assert {name: row["metric"][name] for name in ("what", "site", "remedy")} == {
        "what": "agent.losses",
        "site": SITE,
        "remedy": REMEDY,
    }
    assert values(column(url, "trainer", GROWS, "Bytes/min", of)) == [20e6]
    assert values(column(url, "fleet", "Trainers by verdict", "Per minute", of)) == [20e6]
    shown = panel("fleet", "Trainers by verdict")
    answers = [run(url, Target("fleet", shown, target), HOURS, of) for target in shown["targets"]]
    labels = [one["metric"] for answer in answers for one in answer]
    assert any(one.get("trainer_name") == "killed, 11-24 12:00" for one in labels)
    assert any(one.get("cause") == "out of memory" for one in labels)
    assert any(one.get("what") == "agent.losses" for one in labels)


COLUMNS = ("Verdict", "Per minute", "Time left", "Memory", "Used")
LIMITS = [
    target["refId"] for target in panel("trainer", EXPLAINED)["targets"] if "limit" in target["legendFormat"]
]


def test_the_limit_of_a_trainer_alone_is_drawn_above_its_workers(url: str) -> None:
    """Else the stack of both would cross it while the trainer is below."""
    (ref,) = LIMITS
    lines = asked(url, "trainer", EXPLAINED, ref, "steps:7777")
    warning = next(one for one in lines if one["metric"]["severity"] == "warning")
    assert set(values([warning])) == {1.5e9 + 2e8}


def test_each_trainer_is_measured_against_its_own_machine(url: str) -> None:
    panel_of_all = ("fleet", "Memory used of the limit by trainer")
    (here,) = asked(url, *panel_of_all, of="fleet-3:7777")
    (there,) = asked(url, *panel_of_all, of="fleet-12:7777")
    assert values([here])[-1] == pytest.approx(4 * values([there])[-1])


def test_a_limit_is_there_for_one_trainer(url: str) -> None:
    assert any(asked(url, "trainer", EXPLAINED, ref, "leaking:7777") for ref in LIMITS)


def test_time_since_progress_is_never_negative(url: str) -> None:
    assert min(values(asked(url, "trainer", "Time since last progress", of="level:7777"))) == 0


def test_a_step_is_a_safe_point(url: str) -> None:
    assert max(values(asked(url, "stack", "Time since the last safe point", of="level:7777"))) < 60


def test_a_line_is_one_life_of_a_process(url: str) -> None:
    lines = asked(url, "trainer", "Memory growth per minute", of="lives:7777")
    assert {one["metric"]["trainer_name"] for one in lines} == {"lives, 11-24 12:00", "lives, 11-24 10:00"}


def test_a_name_is_the_latest_where_an_earlier_one_is_still_looked_back_at(url: str) -> None:
    lines = asked(url, "alerts", "Memory around cleanups", of="lives:7777")
    moments = [moment for line in lines for moment, _ in line["values"]]
    assert len(lines) == 2
    assert len(moments) == len(set(moments))


def test_in_fleet_lives_that_ended_are_folded_away(url: str) -> None:
    lines = {
        one["metric"]["trainer_name"] for one in asked(url, "fleet", "Memory used of the limit by trainer")
    }
    assert "lives, 11-24 12:00" in lines
    assert lines.isdisjoint({"lives, 11-24 10:00", "ended, 11-24 12:00"})
    gone = {one["metric"]["trainer_name"] for one in asked(url, "fleet", "Ended in this range")}
    earlier = {f"{name}, 11-24 10:00" for name in TWICE}
    assert gone == earlier | {"ended, 11-24 12:00", "gone, 11-24 12:00"}


def test_what_was_last_known_of_an_ended_trainer_is_reported(url: str) -> None:
    memory = column(url, "fleet", "Ended in this range", "Last memory", "ended:7777")
    assert values(memory) == [400e6]
    assert values(column(url, "fleet", "Ended in this range", "Last verdict", "ended:7777")) == [1]


def test_in_fleet_a_machine_is_one_and_has_no_memory_of_a_trainer(url: str) -> None:
    shown = panel("fleet", "Trainers by verdict")
    answers = [run(url, Target("fleet", shown, target), HOURS) for target in shown["targets"]]
    kinds = {one["metric"]["instance"]: one["metric"].get("Kind") for one in answers[0]}
    assert [instance for instance, kind in kinds.items() if kind == "machine"] == ["node:7790"]
    assert kinds["leaking:7777"] == "trainer"
    said = {name: values(column(url, "fleet", "Trainers by verdict", name, "node:7790")) for name in COLUMNS}
    assert said == {"Verdict": [4], "Per minute": [1e7], "Time left": [7200], "Memory": [], "Used": []}


def test_the_largest_groups_of_a_machine_are_bands_and_the_rest_is_one(url: str) -> None:
    bands = {one["metric"]["group"]: values([one])[-1] for one in asked(url, "machine", "Memory of groups")}
    assert bands == {f"group_{number}": 1e9 + 1e8 * number for number in range(12, 20)}
    (rest,) = asked(url, "machine", "Memory of groups", "B")
    assert values([rest])[-1] == sum(1e9 + 1e8 * number for number in range(12))


def test_the_first_kills_of_a_machine_are_drawn(url: str) -> None:
    (drawn,) = asked(url, "machine", "Processes killed by the kernel")
    assert (drawn["metric"]["group"], sum(values([drawn]))) == ("group_3", 2)


def test_only_machines_can_be_chosen_on_their_page(url: str) -> None:
    chosen = {uid: variables(uid)[-1]["definition"] for uid in (MACHINE, "heapwatch-trainer")}
    found = {uid: ask(url, "query", query=interpolate(_asked(text))) for uid, text in chosen.items()}
    assert [one["metric"]["instance"] for one in found[MACHINE]] == ["node:7790"]
    others = found["heapwatch-trainer"]
    assert [one["metric"]["instance"] for one in others if values([one]) == [0]] == ["node:7790"]
    assert len(others) > 1


def _asked(definition: str) -> str:
    return definition.removeprefix("query_result(").removesuffix(")")
