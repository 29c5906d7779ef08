import shutil
import subprocess
import time

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families as parse

from heapwatch.analysis.readings import Readings
from heapwatch.cli.report import read_prometheus, run_points
from heapwatch.errors import Unreachable, UsageError
from heapwatch.report.document import finding_lines, headline
from heapwatch.report.findings import analyse
from tests.dashboards.server import prometheus

PHASES = ("evaluate", "train", "evolve")
SECONDS = 15
CYCLE = 4  # scrapes a generation


def scrape(generation, step, *, environments, evaluation, started=1000.0):
    """What a trainer exposes: evaluation ends before scrape 1, train before 2, evolve and all before 3."""
    ended = {phase: generation + (step > position) for position, phase in enumerate(PHASES)}
    evaluations = ended["evaluate"]
    resident = 1e9 + evaluation * evaluations
    samples = {
        ("trainer_process_resident_memory_bytes", "role", "trainer"): resident,
        ("trainer_objects", "type", "TradingEnvironment"): 2 + environments * evaluations,
        ("trainer_info", "trainer", "erl_trading"): 1,
        ("process_start_time_seconds", "", ""): started,
    }
    if generation or step == 3:
        samples["trainer_progress_total", "unit", "generation"] = generation + (step == 3)
    for phase in PHASES:
        if ended[phase]:
            samples["trainer_phase_duration_seconds_count", "phase", phase] = ended[phase]
            samples["trainer_phase_end_resident_memory_bytes", "phase", phase] = (
                1e9 + evaluation * ended[phase]
            )
            samples["trainer_phase_memory_delta_bytes", "phase", phase] = evaluation * (phase == "evaluate")
    return samples


def history(generations, **options):
    return [scrape(g, step, **options) for g in range(generations) for step in range(CYCLE)]


def readings(samples):
    family = Metric("all", "", "unknown")
    for (name, label, value), level in samples.items():
        family.add_sample(name, {label: value} if label else {}, level)
    return Readings([family])


def run_of(scrapes, began=1001.0):
    return run_points([(began + SECONDS * n, readings(samples)) for n, samples in enumerate(scrapes)])


def ends_of(run):
    """Generation, phase and growth of each end of a phase."""
    ends = [point for point in run.points if point.event == "phase"]
    return [(point.cycle("generation"), point.phase, point.delta_bytes) for point in ends]


def test_the_ends_of_phases_are_found_between_scrapes():
    run = run_of(history(3, environments=16, evaluation=7e9))
    assert (run.trainer, run.points[0].event) == ("erl_trading", "start")
    assert ends_of(run) == [
        (generation, phase, 7e9 * (phase == "evaluate")) for generation in (1, 2, 3) for phase in PHASES
    ]


def test_phases_that_ended_between_two_scrapes_are_in_the_order_of_their_memory():
    ends = ends_of(run_of(history(4, environments=0, evaluation=7e9)[::CYCLE]))
    assert [phase for _, phase, _ in ends[::3]] == ["evaluate"] * 3
    assert [generation for generation, *_ in ends] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_the_finding_is_the_same_as_from_a_file():
    report = analyse(run_of(history(8, environments=16, evaluation=7e9)))
    assert finding_lines(report.finding, report.unit) == [
        "Phase: evaluate",
        "Growth: +7.00 GB per generation",
        "TradingEnvironment count: 2 -> 130 (increasing by 16 each generation)",
        "Started at generation 1",
    ]


def test_the_report_begins_with_the_last_start():
    before = history(5, environments=16, evaluation=7e9)
    after = history(5, environments=0, evaluation=0, started=9000.0)
    run = run_of([*before, *after])
    assert run.notes == ("The trainer was restarted; the report begins with its last start.",)
    assert analyse(run).finding is None


def test_a_trainer_that_was_away_for_a_while_is_read_on():
    scrapes = history(6, environments=16, evaluation=7e9)
    scrapes[9:12] = [{("up", "", ""): 0}] * 3
    assert analyse(run_of(scrapes)).finding.phase == "evaluate"


def test_what_the_trainer_said_last_is_quoted():
    said = (
        'trainer_process_resident_memory_bytes{role="trainer"} 1e9\n'
        'trainer_memory_verdict{verdict="leak"} 1\n'
        'trainer_growing_path_leak{path="history",type="list of dict",kind="container",site="train.py:7"} 1\n'
    )
    run = run_points([(60.0 * number, Readings(parse(said))) for number in range(3)])
    report = analyse(run)
    assert report.verdict == "leak"
    assert headline(report).startswith(
        "leak: `history` (list of dict, no bound) leaks, filled at train.py:7."
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A real Prometheus with half an hour of two trainers."""
    folder = tmp_path_factory.mktemp("prometheus")
    now = int(time.time()) // SECONDS * SECONDS
    scrapes = history(30, environments=16, evaluation=7e9)
    began = now - SECONDS * len(scrapes)
    lines = []
    for instance, count in (("127.0.0.1:7777", len(scrapes)), ("127.0.0.1:7778", 3)):
        for number, samples in enumerate(scrapes[:count]):
            for (name, label, value), level in samples.items():
                level = began if name == "process_start_time_seconds" else level
                own = f'{label}="{value}",' if label else ""
                moment = began + SECONDS * number
                lines.append(f'{name}{{{own}job="trainer",instance="{instance}"}} {level} {moment}\n')
    text = folder / "history.om"
    text.write_text("".join(sorted(lines, key=lambda line: line.partition(" ")[0])) + "# EOF\n")
    promtool = shutil.which("promtool")
    assert promtool, "promtool is not on PATH: it comes with Prometheus"
    written = ["tsdb", "create-blocks-from", "openmetrics", "--quiet", text, folder / "data"]
    subprocess.run([promtool, *written], check=True, capture_output=True)
    with prometheus(folder / "data") as url:
        yield url


def test_a_run_is_read_from_prometheus(recorded):
    run = read_prometheus(recorded, job="trainer", instance="127.0.0.1:7777", since_seconds=3600)
    report = analyse(run)
    assert run.trainer == "erl_trading"
    assert report.finding.phase == "evaluate"
    assert report.finding.growth_bytes_per_cycle == pytest.approx(7e9, rel=0.05)
    assert report.finding.since == 1


@pytest.mark.parametrize(
    ("job", "instance", "said"),
    [
        ("trainer", None, r"choose with --instance: 127\.0\.0\.1:7777, 127\.0\.0\.1:7778"),
        ("trainer", "host:1", "nothing of host:1 in job trainer in the last 1 h"),
        ('"}\n', None, r'nothing of job "\}\n in the last'),
    ],
)
def test_several_trainers_and_one_that_is_not_there_are_one_clear_line(recorded, job, instance, said):
    with pytest.raises(UsageError, match=said):
        read_prometheus(recorded, job=job, instance=instance, since_seconds=3600)


def test_a_prometheus_that_is_not_there_is_one_clear_line():
    with pytest.raises(Unreachable, match="does not answer"):
        read_prometheus("http://127.0.0.1:1", job="trainer", instance=None, since_seconds=3600)
