"""Every surface says the same of a leaking, a filling, a crowded, a warming and a healthy trainer."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

import heapwatch
from benchmarks.leaks.replay import replay
from benchmarks.leaks.scenario import Scenario
from heapwatch.cli.main import main
from heapwatch.collectors.readings import Readings
from heapwatch.explain.candidate import Candidate
from heapwatch.explain.findings import Explanation, headline, narrative
from heapwatch.explain.levels import LeakingLevels
from heapwatch.explain.schedule import LogLimit
from heapwatch.explain.sites import Site
from heapwatch.http.client import get_json, get_text
from heapwatch.judge.verdict import MEANINGS, SERIOUS, WORDS, Word
from heapwatch.recording.file import Recorder
from heapwatch.recording.points import Point
from heapwatch.text.terminal import say
from heapwatch_dashboards.colors import CODES
from tests.exporters.explain.test_attribution import candidate, curve, judged
from tests.exporters.explain.test_levels import bodies, live
from tests.support.repository import REPOSITORY

MB = 1e6
SECONDS = 900
SCRAPES = 160  # of 15 s
RULES = sorted((REPOSITORY / "prometheus" / "rules").glob("*.yml"))
LINE = Site("/home/me/train.py", 7, "")


@dataclass(frozen=True)
class Case:
    """A trainer: the curve of its memory, what grows in it, and what every surface has to say."""

    word: Word
    level: Callable[[float], float]
    growing: tuple[Candidate, ...] = ()
    limit: float = 20e9
    says: tuple[str, ...] = ()


def rising(at: float) -> float:
    return 500 * MB + 48 * MB * at / 60


def filler(capacity: int | None) -> tuple[Candidate, ...]:
    return (candidate(2400, 20_000, SECONDS, capacity=capacity, site=LINE),)


CASES = {
    "leaking": Case(
        "leak",
        rising,
        filler(None),
        says=("`trainer.history`", "train.py:7", "48 MB/min", "Memory ends in"),
    ),
    "filling": Case(
        "filling", rising, filler(50_000), says=("`trainer.history`", "of 50,000 items", "1 GB when full")
    ),
    "crowded": Case(
        "will not fit",
        rising,
        filler(900_000),
        says=("`trainer.history`", "train.py:7", "of 900,000 items", "18 GB when full", "Memory ends in"),
        limit=5e9,
    ),
    "warming": Case("warm-up", lambda at: 500 * MB + 200 * MB * (1 - exp(-at / 200)), says=("slows down",)),
    "healthy": Case("healthy", lambda at: 500 * MB, says=("Nothing leaks",)),
}


@dataclass(frozen=True)
class Trainer:
    """A served trainer that explains itself so, and its recording."""

    case: Case
    explanation: Explanation
    address: str
    recording: Path


@contextmanager
def serving(name: str, folder: Path) -> Iterator[Trainer]:
    """A trainer of this case, with its target and its recording in the folder."""
    case = CASES[name]
    found = judged(SECONDS, curve(case.level, SECONDS, case.limit), *case.growing)
    path = folder / "run.jsonl"
    recorder = Recorder(path, {"trainer": "walker"}, explain=found.as_json)
    for at in range(0, SECONDS, 15):
        recorder.take(Point(1e9 + at, "sample", case.level(at)))
    recorder.close()
    with pytest.MonkeyPatch.context() as patched:
        in_folder(folder, patched)
        patched.setattr("heapwatch.lifecycle.show_notices", lambda: None)  # the logger is that of all tests
        watch = heapwatch.start(name, port=0)
    server = watch._exporter.server
    assert server is not None
    server.on_observe.clear()  # the environment of each test would move the target
    watch._exporter.explainer.stop()
    watch._exporter.explainer.latest = found
    yield Trainer(case, found, f"127.0.0.1:{server.port}", path)
    watch.stop()


def in_folder(folder: Path, patched: pytest.MonkeyPatch) -> None:
    patched.setenv("HEAPWATCH_TARGETS_DIR", str(folder / "targets"))
    patched.setenv("HEAPWATCH_STATE", str(folder))


@pytest.fixture(scope="module", params=CASES)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainer]:
    with serving(request.param, tmp_path_factory.mktemp(request.param)) as trainer:
        yield trainer


@pytest.fixture
def trainer(served: Trainer, monkeypatch: pytest.MonkeyPatch) -> Trainer:
    in_folder(served.recording.parent, monkeypatch)
    return served


def read_families(address: str) -> list[Metric]:
    return list(text_string_to_metric_families(get_text(f"http://{address}/metrics", 2**22)))


def agrees(trainer: Trainer, text: str) -> None:
    """The text has the word of the verdict and no other, and what it is about."""
    found = text.lower()
    assert trainer.case.word in found, text
    others = {word for word in SERIOUS if f"{word}:" in found} - {trainer.case.word}
    assert not others, text
    for said in trainer.case.says:
        assert said in text, (said, text)


def code(trainer: Trainer) -> int:
    return MEANINGS[trainer.case.word].exit_code


def test_the_explanation_as_json(trainer: Trainer) -> None:
    document = get_json(f"http://{trainer.address}/explain")
    assert document["verdict"] == trainer.case.word
    agrees(trainer, f"{document['verdict']}: {document['message']}")
    left = document["time_to_limit_seconds"]
    assert (left is not None) == (trainer.case.word in SERIOUS)
    assert left is None or 0 < left["least"] < left["most"]


@pytest.mark.parametrize("source", ["address", "recording"])
def test_the_command_explain(trainer: Trainer, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(getattr(trainer, source))]) == code(trainer)
    agrees(trainer, capsys.readouterr().out)


def test_the_summary_of_run(trainer: Trainer, capsys: pytest.CaptureFixture[str]) -> None:
    say(*f"heapwatch: {narrative(trainer.explanation)}".split("\n"), error=True)
    agrees(trainer, capsys.readouterr().err)


def test_the_log(trainer: Trainer) -> None:
    limit = LogLimit()
    lines = [line for now in range(0, 120, 5) if (line := limit.line(trainer.explanation, now))]
    if trainer.case.word in ("healthy", "warm-up"):
        assert lines == []
        return
    (line,) = lines
    agrees(trainer, line.text)
    assert (line.level == logging.WARNING) == bool(code(trainer))


def test_the_series(trainer: Trainer) -> None:
    readings = Readings(read_families(trainer.address))
    assert readings.by("trainer_memory_verdict", "verdict") == {
        word: float(word == trainer.case.word) for word in WORDS
    }
    left = readings.by("trainer_memory_time_to_limit_seconds", "bound")
    assert bool(left) == (trainer.explanation.time_left is not None)


def test_the_monitor(trainer: Trainer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "--count", "1", trainer.address]) == code(trainer)
    agrees(trainer, capsys.readouterr().out)


@pytest.mark.slow
def test_the_alerts(tmp_path: Path) -> None:
    """What they export, with the memory of their recordings, through Prometheus's own rule engine."""
    series: dict[str, list[float | None]] = {}
    for name, case in CASES.items():
        of_job = f'job="trainer",instance="{name}"'
        (tmp_path / name).mkdir()
        with serving(name, tmp_path / name) as trainer:
            exposed = [one for family in read_families(trainer.address) for one in family.samples]
        for sample in exposed:
            labels = (f"{label}={json.dumps(value)}" for label, value in sample.labels.items())
            series[f"{sample.name}{{{','.join([of_job, *labels])}}}"] = [sample.value] * SCRAPES
        resident = f'trainer_process_resident_memory_bytes{{{of_job},role="trainer"}}'
        assert resident in series
        series[resident] = [case.level(15.0 * at) for at in range(SCRAPES)]
        series[f"process_start_time_seconds{{{of_job}}}"] = [0.0] * SCRAPES
        series[f"up{{{of_job}}}"] = [1.0] * SCRAPES
    serious = {"TrainerLeak": "leak", "TrainerBufferWillNotFit": "will not fit"}
    fired = {
        (alert["instance"], serious[alert["alertname"]])
        for alerts in replay(Scenario("all", series), RULES).values()
        for alert in alerts
        if alert["alertname"] in serious
    }
    assert fired == {(name, case.word) for name, case in CASES.items() if case.word in SERIOUS}


def test_the_pages_have_the_word_and_a_row_for_what_grows(trainer: Trainer) -> None:
    """The queries read these series; tests/dashboards runs them."""
    readings = Readings(read_families(trainer.address))
    assert trainer.case.word in CODES
    assert (CODES[trainer.case.word] >= CODES["will not fit"]) == bool(code(trainer))
    shown = dict(readings.labels("trainer_growing_path_leak"))
    assert shown.get("path") == (trainer.case.growing[0].known.path if trainer.case.growing else None)


def test_the_status_and_the_landing_page(trainer: Trainer) -> None:
    leaks = get_json(f"http://{trainer.address}/performance_status")["leaks"]
    assert leaks["verdict"] == trainer.case.word
    agrees(trainer, f"{leaks['verdict']}: {leaks['message']}")
    assert ("time_to_limit_seconds" in leaks) == (trainer.case.word in SERIOUS)
    page = get_text(f"http://{trainer.address}/", 2**20)
    assert f"Verdict: {trainer.case.word}: " in page


def test_a_report_of_the_recording(trainer: Trainer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(trainer.recording)]) == code(trainer)
    agrees(trainer, capsys.readouterr().out.replace("\\", ""))


def test_bodies_that_leak_are_a_leak_on_every_surface_while_memory_warms_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_folder(tmp_path, monkeypatch)
    with heapwatch.start("walker", port=0) as watch:
        exporter = watch._exporter
        exporter.explainer.stop()
        monkeypatch.setattr(exporter, "_leaking", LeakingLevels(live(bodies).verdicts))
        logged = LogLimit()
        warming = Explanation("warm-up", 3600.0, 18.6e6, 0.0)
        exporter.explainer.latest = exporter._beside(warming)
        assert exporter.server is not None
        address = f"127.0.0.1:{exporter.server.port}"
        lines = [logged.line(exporter.explainer.latest, now) for now in (0, 60)]
        assert main(["explain", address]) == 2
        assert main(["monitor", "--count", "1", address]) == 2
        said = [capsys.readouterr().out, str(lines[1]), str(get_json(f"http://{address}/performance_status"))]
    for text in said:
        assert "leak" in text
        assert "bodies dynamic" in text
        assert "No leak" not in text


def test_no_message_is_without_its_verdict() -> None:
    for word in WORDS:
        said = headline(Explanation(word, 300.0, 0.0, 1.0))
        assert said.startswith(word)
        assert "0 B/min" not in said
        assert "  " not in said
