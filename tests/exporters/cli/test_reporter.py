import re

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from heapwatch.analysis.limits import BODIES
from heapwatch.analysis.readings import MEMORY, Readings
from heapwatch.analysis.verdict import WORDS
from heapwatch.cli.reporter import Reporter, Thresholds
from heapwatch.cli.sources import Sample

ROUTINE = re.compile(f"Memory=|Body types:|({'|'.join(WORDS)})(:|$)")


def sample(time, *, dynamic=155, memory=738.3e6, food=6, started=1, extra=""):
    text = f"""
{extra}
trainer_limit_profile{{profile="walker"}} 1
process_start_time_seconds {started}
trainer_process_resident_memory_bytes{{role="trainer"}} {memory}
trainer_bodies{{type="static"}} 1
trainer_bodies{{type="dynamic"}} {dynamic}
trainer_bodies{{type="agent"}} 30
trainer_entities{{type="food_sources"}} {food}
trainer_progress_total{{unit="step"}} 5558
"""
    return Sample("127.0.0.1:7777", time, Readings(parse(text)))


def reporter(interval=15.0, **thresholds):
    return Reporter(Thresholds(**thresholds), interval=interval)


def news(messages):
    """What is not said at each sample."""
    return [message.text for message in messages if not ROUTINE.match(message.text)]


def said(watching, samples):
    """The news about each of these samples."""
    return [news(watching.report(one)) for one in samples]


def test_line_and_body_types_are_those_of_the_document_once_a_sample():
    watching = reporter()
    line, types, _ = watching.report(sample(1.0))
    assert line.text == "Memory=738.3MB, Bodies=186, Food=6, Step=5558"
    assert types.text == "Body types: Static=1, Dynamic=155, Agent=30"


def test_what_is_not_known_is_left_out():
    (message,) = reporter().report(
        Sample("a", 1.0, Readings(parse('trainer_entities{type="food_sources"} 6\n')))
    )
    assert message.text == "Food=6"


def test_alert_is_said_once_although_its_value_changes():
    watching = reporter()
    first, *others = said(watching, (sample(15.0 * i, memory=1.2e9 + 1e6 * (i % 3)) for i in range(30)))
    assert first == ["WARNING: memory = 1200.0MB (>= 1000.0MB)"]
    assert not any(others)
    assert watching.severity == "warning"


def test_alert_is_said_again_when_its_level_changes_and_when_it_is_over():
    watching = reporter()
    assert news(watching.report(sample(0, dynamic=600))) == ["WARNING: world_bodies = 631 (>= 500)"]
    assert news(watching.report(sample(15, dynamic=1216, food=67))) == [
        "CRITICAL: world_bodies = 1247 (>= 1000)",
        "WARNING: food_sources = 67 (>= 50)",
    ]
    assert watching.severity == "critical"
    assert news(watching.report(sample(30, dynamic=600, food=67))) == ["WARNING: world_bodies = 631 (>= 500)"]
    assert news(watching.report(sample(45))) == [
        "ENDED: world_bodies is back at 186",
        "ENDED: food_sources is back at 6",
    ]
    assert watching.severity == "ok"


def test_alert_that_stands_is_repeated_after_a_while():
    lines = said(reporter(), (sample(60.0 * i, memory=1.2e9) for i in range(25)))
    assert [i for i, told in enumerate(lines) if told] == [0, 10, 20]


def test_level_at_its_limit_does_not_chatter():
    around = (sample(15.0 * i, memory=1e9 + (2e6 if i % 2 else -2e6)) for i in range(20))
    assert sum(map(len, said(reporter(), around))) == 1


@pytest.mark.parametrize("interval", [1.0, 20.0, 60.0])
def test_growth_is_per_minute_at_any_interval(interval):
    times = [i * interval for i in range(1 + int(1200 / interval))]
    lines = said(reporter(interval), (sample(at, dynamic=155 + 0.25 * at) for at in times))
    alerts = [line for told in lines for line in told if "GROWTH ALERT: dynamic" in line]
    assert re.fullmatch(r"BODY GROWTH ALERT: dynamic_bodies \+\d+ \(15/min, limit 10/min\)", alerts[0])
    assert len(alerts) <= 2


def test_two_samples_of_noise_are_no_growth():
    # 1650 MB a minute, says a difference of two.
    assert not any(said(reporter(), (sample(0, memory=700e6), sample(6, memory=865e6))))


def test_growth_is_measured_again_after_a_restart():
    watching = reporter()
    said(watching, (sample(20.0 * i, memory=3e8) for i in range(20)))
    messages = watching.report(sample(420, memory=6e8, started=400))
    assert "restarted" in messages[0].text
    after = (sample(440 + 20.0 * i, memory=6e8, started=400) for i in range(20))
    assert not any(said(watching, after))


def test_silence_of_a_trainer_is_said_once_and_its_return_too():
    watching = reporter()
    watching.report(sample(1.0))
    down = Sample("127.0.0.1:7777", 2.0, problem="it does not answer")
    assert "UNKNOWN: it does not answer" in watching.report(down)[0].text
    assert watching.report(down) == []
    assert watching.severity == "unknown"
    assert "answers again" in watching.report(sample(3.0))[0].text
    assert watching.severity == "ok"


OWN_LIMIT = 'trainer_limit{resource="memory",component="",severity="warning"} 5e8'


@pytest.mark.parametrize(
    ("options", "extra", "warns"),
    [
        ({}, "", False),
        ({}, OWN_LIMIT, True),
        ({"given": {MEMORY: {"warning": 2e9}}}, OWN_LIMIT, False),
        ({"profile": "walker-aggressive"}, "", True),
        ({"profile": "walker-aggressive", "given": {MEMORY: {"warning": 2e9, "critical": 3e9}}}, "", False),
        ({}, 'trainer_limit_profile{profile="aggressive"} 1', True),
        ({"given": {BODIES: {"warning": 100}}}, "", True),
    ],
)
def test_limits_are_the_command_lines_then_the_trainers_then_the_defaults(options, extra, warns):
    assert bool(news(reporter(**options).report(sample(1, extra=extra)))) is warns


def test_a_frozen_trainer_is_reported_once_and_makes_the_exit_code_and_long_cycles_do_not():
    watching = reporter()
    frozen = "trainer_last_progress_timestamp_seconds 100\n"
    watching.report(sample(110, extra=frozen))
    assert watching.severity == "ok"
    told = [m.text for at in (500, 515) for m in watching.report(sample(at, extra=frozen))]
    (stalled,) = [text for text in told if "STALLED" in text]
    assert stalled == "STALLED: training has made no progress for 400 s"
    assert watching.severity == "critical"
    watching.report(sample(530, extra="trainer_last_progress_timestamp_seconds 530\n"))
    assert watching.severity == "ok"
    long = "trainer_last_progress_timestamp_seconds 100\ntrainer_longest_pause_seconds 6000\n"
    watching.report(sample(7000, extra=long))
    assert watching.severity == "ok"


def test_a_leak_is_reported_by_the_definition_of_the_rules_and_before_its_time_it_is_too_early():
    watching = reporter()
    texts = [
        [message.text for message in watching.report(one)]
        for one in (sample(20.0 * i + 1, memory=5e8 + 2.4e6 * max(0, i - 90)) for i in range(160))
    ]
    assert "too early: watched for 0 of 24 minutes" in texts[0]
    assert "too early: watched for 12 of 24 minutes" in texts[37]
    assert "healthy" in texts[88]
    reported = [i for i, lines in enumerate(texts) if any("does not slow down" in line for line in lines)]
    assert 105 <= reported[0] <= 118
    assert "CRITICAL: memory leaks: it grows by 5.2MB/min and does not slow down" in texts[reported[0]]
    assert "leak: memory trainer" in texts[reported[0]]
    assert watching.severity == "critical"


def test_a_buffer_that_keeps_graphs_is_reported_with_its_remedy_and_when_it_releases_them():
    held = 'trainer_buffer_items{{buffer="memory"}} 177\ntrainer_buffer_graph_tensors{{buffer="memory"}} {}'
    samples = (sample(30.0 * i + 1, extra=held.format(176.6 if i < 40 else 0)) for i in range(60))
    told = said(reporter(), samples)
    assert [line for lines in told for line in lines] == [
        "WARNING: buffer memory: 177 tensors keep their autograd graphs; "
        "store tensor.detach().cpu(), or .item() for a number",
        "ENDED: buffer memory lets go of autograd graphs again",
    ]


def test_memory_since_the_start_is_reported_by_name():
    text = (
        'trainer_limit_profile{profile="erl-trading"} 1\ntrainer_memory_baseline_bytes 4e9\n'
        'trainer_process_resident_memory_bytes{role="trainer"} 39.5e9\n'
    )
    (told,) = said(reporter(), [Sample("127.0.0.1:7777", 1.0, Readings(parse(text)))])
    assert "WARNING: memory since the start = 35500.0MB (>= 35000.0MB)" in told
