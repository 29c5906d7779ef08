"""What is kept of a trainer that is watched live: bounded, and judged as a whole recording is."""

from __future__ import annotations

import random

from prometheus_client.parser import text_string_to_metric_families as parse

from heapwatch.judge.judge import _MOST_EVALUATIONS, _MOST_SERIES, LiveVerdicts, judge
from heapwatch.judge.observed import Series, observed
from heapwatch.collectors.readings import MEMORY, Component, Readings

RSS = Series("trainer_process_resident_memory_bytes", (("role", "trainer"),))
START = Series("process_start_time_seconds")


def readings(memory, more=""):
    resident = f'trainer_process_resident_memory_bytes{{role="trainer"}} {memory}'
    return Readings(parse(f"{resident}\nprocess_start_time_seconds 0\n{more}"))


def test_verdicts_are_those_of_the_whole_recording(monkeypatch):
    monkeypatch.setattr("heapwatch.judge.judge._SHARE", 1.0)  # a verdict at each step, also if slow
    noise = random.Random(3)
    values = [2e9 + noise.gauss(0, 2e6) + 6e6 * max(0, index - 100) for index in range(240)]
    live = LiveVerdicts()
    reported = []
    for index, value in enumerate(values):
        live.observe(30.0 * index, readings(value))
        reported.append(live.verdicts().leaks[MEMORY][-1])
    samples = [(30.0 * index, value) for index, value in enumerate(values)]
    starts = [(time, 0.0) for time, _ in samples]
    whole = judge(observed({RSS: samples, START: starts}, 0.0, len(values))).leaks[MEMORY]
    assert any(whole)
    assert reported == whole


def test_samples_between_two_evaluations_are_left_out():
    live = LiveVerdicts()
    for number in range(40):
        live.observe(15.0 * number, readings(1e9))
    assert len(live.verdicts().watched_minutes) == 21


def test_a_long_run_and_many_series_are_bounded():
    live = LiveVerdicts()
    many = "".join(f'trainer_entities{{type="t{number}"}} 1\n' for number in range(2 * _MOST_SERIES))
    live.observe(0.0, readings(1e9, many))
    assert len(live.verdicts().leaks) <= _MOST_SERIES
    for index in range(1, 3 * _MOST_EVALUATIONS):
        live.observe(30.0 * index, readings(1e9))
    verdicts = live.verdicts()
    assert _MOST_EVALUATIONS <= len(verdicts.watched_minutes) <= _MOST_EVALUATIONS * 9 // 8 + 1
    assert verdicts.leaks.keys() == {MEMORY}


def test_a_clock_that_is_set_back_starts_again():
    live = LiveVerdicts()
    live.observe(1000.0, readings(1e9, 'trainer_entities{type="food"} 1\n'))
    live.observe(10.0, readings(1e9))
    assert live.verdicts().leaks.keys() == {MEMORY}
    assert Component("entities", "food") not in live.verdicts().leaks


def test_a_gap_of_days_costs_nothing():
    live = LiveVerdicts()
    live.observe(0.0, readings(1e9))
    live.observe(30 * 86400.0, readings(1e9))
    assert len(live.verdicts().watched_minutes) == 2 * _MOST_EVALUATIONS + 1


def test_verdicts_are_worked_out_again_once_the_last_have_paid_for_themselves(monkeypatch):
    spent = iter((0.0, 0.1))
    live = LiveVerdicts()
    live.observe(0.0, readings(1e9))
    monkeypatch.setattr("heapwatch.judge.judge.clock.thread_time", lambda: next(spent, 0.1))
    first = live.verdicts()
    for number in range(1, 5):
        live.observe(10.0 * number, readings(1e9))
    assert live.verdicts() is first
    live.observe(60.0, readings(1e9))
    assert live.verdicts() is not first


def test_nothing_is_said_of_nothing():
    assert not LiveVerdicts().verdicts().seen
    assert LiveVerdicts().verdicts().word == "too early"
    assert LiveVerdicts().verdicts().alerts() == []


def holding(tensors, items=1000):
    return readings(
        1e9,
        f'trainer_buffer_items{{buffer="memory"}} {items}\n'
        f'trainer_buffer_capacity_items{{buffer="memory"}} 1000\n'
        f'trainer_buffer_graph_tensors{{buffer="memory"}} {tensors}\n'
        'trainer_event_list_items{list="death"} 5\ntrainer_event_list_capacity_items{list="death"} 9\n',
    )


def test_a_full_buffer_that_keeps_graphs_is_reported_after_ten_minutes():
    live = LiveVerdicts()
    reported = []
    for index in range(30):
        live.observe(30.0 * index, holding(900))
        reported.append(live.verdicts().holding_graphs())
    assert [bool(found) for found in reported[:23]] == [False] * 22 + [True]  # and a minute, as the alert
    assert live.verdicts().levels.keys() == {MEMORY}, "what has a bound is no level"
    assert reported[-1] == {Component("buffer", "memory"): 900}
    (alert,) = live.verdicts().alerts()
    assert (alert.kind, alert.severity, alert.value) == ("graphs", "warning", 900)
    assert live.verdicts().word == "leak"
    assert list(map(str, live.verdicts().found())) == ["buffer memory"]


def test_a_buffer_that_releases_graphs_in_between_or_keeps_few_holds_none():
    for levels in ([900] * 9 + [20], [400]):
        live = LiveVerdicts()
        for index in range(60):
            live.observe(30.0 * index, holding(levels[index % len(levels)]))
            assert live.verdicts().holding_graphs() == {}
