import re

import pytest

from heapwatch.cli.reporter import Reporter
from heapwatch.judge.component import MEMORY
from heapwatch.judge.limits import BODIES
from heapwatch.judge.verdict import WORDS

ROUTINE = re.compile(f"Memory=|Body types:|({'|'.join(WORDS)})(:|$)")


def alert(severity, resource, component, value, limit, kind="threshold", per=""):
    return {
        "severity": severity, "kind": kind, "resource": resource, "component": component,
        "value": value, "limit": limit, "per": per,
    }  # fmt: skip


def memory_high(value=1.2e9, severity="warning"):
    return alert(severity, "memory", "trainer", value, 1e9 if severity == "warning" else 1.5e9)


def sample(time, *alerts, **about):
    status = {
        "training": "progressing",
        "performance": {"memory_mb": 738.3, "step_count": 5558, "seconds_since_progress": 1.0},
        "entities": {
            "world_bodies": 186, "static_bodies": 1, "dynamic_bodies": 155, "total_agents": 30,
            "food_sources": 6,
        },
        "memory": {"resident_bytes": {"trainer": 738.3e6}},
        "body_types": {"dynamic": 155, "static": 1, "agent": 30},
        "leaks": {"verdict": "healthy"},
        "alerts": list(alerts),
    }  # fmt: skip
    return time, status | about


def texts(lines):
    """The lines without their times and without what is before them."""
    return [re.sub(r"^(\d\d:\d\d:\d\d:| +) ", "", line).strip() for line in lines]


def news(lines):
    """What is not said at each sample."""
    return [text for text in texts(lines) if not ROUTINE.match(text)]


def said(watching, samples):
    """The news about each of these samples."""
    return [news(watching.report(*one)) for one in samples]


def test_line_and_body_types_are_those_of_the_document_once_a_sample():
    lines = Reporter().report(*sample(1.0))
    assert re.fullmatch(r"\d\d:\d\d:\d\d: Memory=738.3MB, Bodies=186, Food=6, Step=5558", lines[0])
    assert lines[1:] == ["   Body types: Static=1, Dynamic=155, Agent=30", "   healthy"]


def test_what_is_not_known_is_left_out():
    known = {"training": "unknown", "entities": {"food_sources": 6}, "alerts": []}
    assert texts(Reporter().report(1.0, known)) == ["Food=6"]


def test_alert_is_said_once_although_its_value_changes_and_repeated_after_a_while():
    watching = Reporter()
    lines = said(watching, (sample(60.0 * i, memory_high(1.2e9 + 1e6 * i)) for i in range(25)))
    assert lines[0] == ["WARNING: memory = 1200.0MB (>= 1000.0MB)"]
    assert [i for i, told in enumerate(lines) if told] == [0, 10, 20]
    assert watching.severity == "warning"


def test_alert_is_said_again_when_its_level_changes_and_when_it_is_over():
    watching = Reporter()
    assert news(watching.report(*sample(0, memory_high()))) == ["WARNING: memory = 1200.0MB (>= 1000.0MB)"]
    food = alert("warning", "entities", "food_sources", 67, 50)
    assert news(watching.report(*sample(15, food, memory_high(1.6e9, "critical")))) == [
        "CRITICAL: memory = 1600.0MB (>= 1500.0MB)",
        "WARNING: food_sources = 67 (>= 50)",
    ]
    assert watching.severity == "critical"
    milder = [sample(at, memory_high()) for at in (30, 45)]
    assert said(watching, milder) == [
        [],
        ["WARNING: memory = 1200.0MB (>= 1000.0MB)", "ENDED: food_sources is below its limit"],
    ]
    assert said(watching, [sample(60), sample(75)]) == [[], ["ENDED: memory is below its limit"]]
    assert watching.severity == "ok"


def test_level_at_its_limit_does_not_chatter():
    around = (sample(15.0 * i, *[memory_high()] * (i % 2)) for i in range(20))
    assert sum(map(len, said(Reporter(), around))) == 1


def test_growth_leaks_and_graphs_have_words_of_their_own():
    alerts = [
        alert("warning", "bodies", "dynamic", 15.0, 10.0, "growth", "minute"),
        alert("warning", "memory", "trainer", 572e6, 500e6, "growth", "generation"),
        alert("warning", "memory", "trainer", 25e6, 20e6, "growth", "minute"),
        alert("critical", "memory", "trainer", 5.2e6, 0.0, "leak"),
        alert("warning", "buffer", "memory", 176.6, 0.0, "graphs"),
        alert("warning", "memory", "since start", 35.5e9, 35e9),
    ]
    watching = Reporter()
    assert news(watching.report(*sample(1.0, *alerts))) == [
        "CRITICAL: memory leaks: it grows by 5.2MB/min and does not slow down",
        "BODY GROWTH ALERT: dynamic_bodies grows by 15/min (limit 10/min)",
        "WARNING: memory grows by 572.0MB/generation (limit 500.0MB/generation)",
        "WARNING: memory grows by 25.0MB/min (limit 20.0MB/min)",
        "WARNING: buffer memory: 177 tensors keep their autograd graphs; "
        "store tensor.detach().cpu(), or .item() for a number",
        "WARNING: memory since the start = 35500.0MB (>= 35000.0MB)",
    ]
    assert (
        "ENDED: buffer memory lets go of autograd graphs again" in said(watching, [sample(2), sample(3)])[1]
    )


def test_silence_of_a_trainer_is_said_once_and_its_return_too():
    watching = Reporter()
    assert watching.severity == "unknown"
    watching.report(*sample(1.0))
    assert texts(watching.report_problem(2.0, "it does not answer")) == ["UNKNOWN: it does not answer"]
    assert watching.report_problem(2.0, "it does not answer") == []
    assert watching.severity == "unknown"
    assert "answers again" in watching.report(*sample(3.0))[0]
    assert watching.severity == "ok"


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({MEMORY: {"warning": 2e9}}, []),
        ({MEMORY: {"warning": 5e8, "critical": 9e8}}, ["WARNING: memory = 738.3MB (>= 500.0MB)"]),
        ({MEMORY: {"critical": 7e8}}, ["CRITICAL: memory = 738.3MB (>= 700.0MB)"]),
        ({BODIES: {"warning": 100}, MEMORY: {"warning": 2e9}}, ["WARNING: world_bodies = 186 (>= 100)"]),
    ],
)
def test_limits_of_the_command_line_replace_those_of_the_trainer(limits, told):
    assert news(Reporter(limits).report(*sample(1, memory_high()))) == told


def test_a_stalled_trainer_is_reported_once_and_is_critical_and_so_is_a_leak():
    watching = Reporter()
    frozen = {"training": "stalled", "performance": {"seconds_since_progress": 400.0}}
    told = said(watching, [sample(at, **frozen) for at in (500, 515)])
    assert [line for lines in told for line in lines if "STALLED" in line] == [
        "STALLED: training has made no progress for 7 min"
    ]
    assert watching.severity == "critical"
    watching.report(*sample(530))
    assert watching.severity == "ok"
    watching.report(*sample(545, leaks={"verdict": "leak", "message": "bodies dynamic"}))
    assert watching.severity == "critical"
