"""The leak benchmark: scenarios are made again by seed, replayed by the real engine, and judged fairly."""

import os
import subprocess
import sys

import pytest

from benchmarks.leaks.__main__ import RULES
from benchmarks.leaks.judge import OURS, Score, judge
from benchmarks.leaks.judged import firing, with_judge
from benchmarks.leaks.replay import replay
from benchmarks.leaks.scenario import Scenario, generate
from tests.support.programs import find

RSS = 'trainer_process_resident_memory_bytes{role="trainer"}'


def scenario(truth, values=(1e9,) * 240):
    return Scenario("s", {RSS: list(values)}, truth)


def judged(one, firing):
    scores = {OURS: Score()}
    judge(one, firing, scores)
    return scores[OURS]


def alert(resource="memory", component="trainer", **labels):
    return {"alertname": "TrainerLeak", "resource": resource, "component": component, **labels}


@pytest.fixture(scope="module")
def made():
    return list(generate(3, each=2))


@pytest.mark.slow
def test_a_seed_means_the_same_to_every_process(made):
    program = "from benchmarks.leaks.scenario import generate; print([vars(s) for s in generate(3, 1)][::3])"
    command = [sys.executable, "-c", program]
    again = subprocess.check_output(command, env={**os.environ, "PYTHONHASHSEED": "1"}, text=True)
    assert again.strip() == str([vars(s) for s in made if s.id.endswith(".0")][::3])
    assert next(generate(4)).series != next(generate(3)).series


@pytest.mark.parametrize(
    ("fired", "found", "false"),
    [
        ({20: [alert()]}, 1, 0),
        ({5: [alert()]}, 0, 1),  # before it began
        ({5: [alert()], 20: [alert()]}, 1, 1),
        ({20: [alert("buffer", "replay")]}, 0, 1),
        ({20: [alert(component="worker")], 21: [alert(component="worker")]}, 0, 1),
        ({}, 0, 0),
    ],
)
def test_an_alert_is_right_when_it_names_a_leak_that_has_begun(fired, found, false):
    truth = [{"resource": "memory", "component": "trainer", "onset_min": 10}]
    score = judged(scenario(truth), fired)
    assert (score.found, score.false, score.leaks) == (found, false, 1)
    assert score.delays == [10] * found


def test_what_was_lost_is_counted_until_the_alert_or_the_end():
    rising = [1e9 + 1e6 * n for n in range(240)]
    truth = [{"resource": "memory", "component": None, "onset_min": 10}]
    assert judged(scenario(truth, rising), {20: [alert()]}).lost == [40e6]
    assert judged(scenario(truth, rising), {}).lost == [199e6]
    missed = [*rising[:20], *[None] * 30, *rising[50:]]
    assert judged(scenario(truth, missed), {20: [alert()]}).lost == [61e6]  # from the last scrape before


def test_false_alarms_of_healthy_trainers_are_counted_by_the_day():
    healthy = Scenario("s", {f'{RSS[:-1]},instance="{i}"}}': [1e9] * 5760 for i in "ab"})
    score = judged(healthy, {20: [alert(instance="a")], 30: [alert(instance="b")]})
    assert (score.healthy_false, score.healthy_days) == (2, 2.0)


@pytest.mark.slow
def test_the_rule_engine_finds_a_leak_and_leaves_its_neighbour_alone():
    labels = RSS[:-1]
    rising = [15e6 * n for n in range(100)]
    series = {
        f'{labels},instance="leaks"}}': [2e9] * 160 + [2e9 + more for more in rising],
        f'{labels},instance="fills"}}': [2e9 + more for more in rising] + [3.5e9] * 160,
        'trainer_buffer_bytes{buffer="replay",instance="fills"}': rising + [1.5e9] * 160,
        'trainer_buffer_capacity_bytes{buffer="replay",instance="fills"}': [1.5e9] * 260,
    }
    scenario = Scenario("two", series)
    by_rules = replay(with_judge(scenario), [RULES / "levels.yml", RULES / "leak_alerts.yml"])
    for fired in (by_rules, firing(scenario)):
        assert {a["instance"] for alerts in fired.values() for a in alerts} == {"leaks"}
        assert 40 < min(fired) <= 55


def test_a_rule_file_that_does_not_load_is_an_error(tmp_path):
    find("promtool")
    broken = tmp_path / "broken.yml"
    broken.write_text("groups: [{name: g, rules: [{record: r, expr: 'sum('}]}]")
    with pytest.raises(ValueError, match="could not replay"):
        replay(scenario([]), [broken])
