"""Every surface says the same of a trainer: a leak, a buffer that does not fit, bodies that leak, health."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import heapwatch
from benchmarks.leaks.replay import replay
from benchmarks.leaks.scenario import Scenario
from heapwatch.cli.main import main
from heapwatch.collectors.readings import Readings
from heapwatch.explain.findings import Explanation, headline
from heapwatch.explain.levels import Declared, with_judged_levels
from heapwatch.explain.schedule import LogLimit
from heapwatch.explain.sites import Site
from heapwatch.http.client import get_json, get_text
from heapwatch.judge.component import Component
from heapwatch.judge.trainer import Leak, TrainerJudge
from heapwatch.judge.verdict import MEANINGS, SERIOUS, WORDS
from heapwatch.recording.file import Recorder
from heapwatch.recording.points import Point
from tests.support.judged_memory import candidate, growth_of, judged, memory
from tests.support.repository import REPOSITORY

MB = 1e6
SECONDS = 900
LINE = Site("/home/me/train.py", 7, "")
RULES = sorted((REPOSITORY / "prometheus" / "rules").glob("*.yml"))


def explained(growing: bool, leaks: tuple[Leak, ...] = (), **about: object) -> Explanation:
    """The explanation of a trainer with a list that grows by 48 MB/min, or of one that stands still."""
    grown = memory(48 * MB if growing else 0.0, SECONDS, limit=5e9)
    held = [candidate(2400, 20_000, SECONDS, site=LINE, **about)] if growing else []
    judge = TrainerJudge()
    judge.leaks = leaks
    return with_judged_levels(judged(SECONDS, grown, *held), judge, growth_of(grown, SECONDS), Declared())


# The explanation, and what every surface has to say with its verdict.
CASES: dict[str, tuple[Callable[[], Explanation], tuple[str, ...]]] = {
    "leak": (lambda: explained(True), ("`trainer.history`", "train.py:7", "48 MB/min")),
    "will not fit": (lambda: explained(True, capacity=900_000), ("`trainer.history`", "train.py:7", "18 GB")),
    "bodies": (
        lambda: explained(False, (Leak(Component("bodies", "dynamic"), "growth", 46.0, 2860.0),)),
        ("bodies dynamic",),
    ),
    "healthy": (lambda: explained(False), ("Nothing leaks",)),
}


@pytest.fixture(scope="module", params=CASES)
def trainer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Explanation, str, Path]]:
    """An explanation, the address of a trainer that gives it, and its recording."""
    folder = tmp_path_factory.mktemp("trainer")
    found = CASES[request.param][0]()
    recorder = Recorder(folder / "run.jsonl", {"trainer": "walker"}, explain=found.as_json)
    for at in range(0, SECONDS, 15):
        recorder.take(Point(1e9 + at, "sample", 500 * MB))  # where it is known, the explanation decides
    recorder.close()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HEAPWATCH_TARGETS_DIR", str(folder / "targets"))
        patched.setenv("HEAPWATCH_STATE", str(folder))
        patched.setattr("heapwatch.lifecycle.show_notices", lambda: None)  # the logger is that of all tests
        watch = heapwatch.start("walker", port=0)
        server = watch.exporter.server
        assert server is not None
        watch.exporter.explainer.stop()
        watch.exporter.explainer.explanations.add(found, 0.0)
        yield found, f"127.0.0.1:{server.port}", folder / "run.jsonl"
        watch.stop()


def test_every_surface_says_the_same(
    trainer: tuple[Explanation, str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    found, address, recording = trainer
    about = next(says for made, says in CASES.values() if made() == found)
    exit_code = MEANINGS[found.verdict].exit_code
    said = {}
    for command in (
        ["explain", address],
        ["explain", str(recording)],
        ["report", str(recording)],
        ["monitor", "--count", "1", address],
    ):
        assert main(command) == exit_code, command
        said[" ".join(command[:2])] = capsys.readouterr().out.replace("\\", "")
    document, status = get_json(f"http://{address}/explain"), get_json(f"http://{address}/performance_status")
    said["/explain"] = f"{document['verdict']}: {document['message']}"
    said["/performance_status"] = f"{status['leaks']['verdict']}: {status['leaks']['message']}"
    said["/"] = get_text(f"http://{address}/", 2**20)
    said["log"] = headline(found)
    for surface, text in said.items():
        assert f"{found.verdict}:" in text, surface
        others = {word for word in WORDS if f"{word}: " in text.lower()} - {found.verdict}
        assert not others & {*SERIOUS, "healthy", "too early", "warm-up"}, (surface, text)
        for part in about:
            assert part in text, (surface, part)
    log = LogLimit()
    lines = [line for now in range(0, 120, 5) if (line := log.line(found, now))]
    assert bool(lines) == (found.verdict in SERIOUS)

    families = list(text_string_to_metric_families(get_text(f"http://{address}/metrics", 2**22)))
    readings = Readings(families)
    verdicts = {word: float(word == found.verdict) for word in WORDS}
    assert readings.by("trainer_memory_verdict", "verdict") == verdicts
    assert bool(readings.samples("trainer_leak")) == (found.verdict == "leak")
    assert bool(readings.by("trainer_memory_time_to_limit_seconds", "bound")) == (found.time_left is not None)
    series: dict[str, list[float | None]] = {'up{job="trainer",instance="a"}': [1.0] * 40}
    for sample in (sample for family in families for sample in family.samples):
        own = sorted((sample.labels | {"job": "trainer", "instance": "a"}).items())
        labels = ",".join(f"{label}={json.dumps(value)}" for label, value in own)
        series[f"{sample.name}{{{labels}}}"] = [sample.value] * 40
    fired = {
        alert["alertname"] for alerts in replay(Scenario("all", series), RULES).values() for alert in alerts
    }
    serious = {"leak": {"TrainerLeak"}, "will not fit": {"TrainerBufferWillNotFit"}}
    assert fired & {"TrainerLeak", "TrainerBufferWillNotFit"} == serious.get(found.verdict, set())


def test_no_message_is_without_its_verdict() -> None:
    for word in WORDS:
        said = headline(Explanation(word, 300.0, 0.0, 1.0))
        assert said.startswith(word)
        assert "0 B/min" not in said
        assert "  " not in said
