"""MEMORY_DEBUGGING.md and the memory leak fixes of generation 13: evolutionary trading."""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psutil
import pytest
import torch
from prometheus_client.parser import text_string_to_metric_families

from examples.erl_trading.agent import STATE
from examples.erl_trading.market import make_market
from heapwatch.http.status import Status
from heapwatch.judge.component import GROWN
from heapwatch.recording.file import read_recording
from heapwatch.report.document import as_text, finding_lines, sections
from heapwatch.report.findings import analyse
from heapwatch.watch import Watch
from tests.dashboards.documents import interpolate, targets
from tests.documents.evolved import Evolved, evolved, said_by
from tests.documents.example import Example, finished
from tests.documents.rows import Check, labels, limit
from tests.documents.rules import NOTHING, evaluate
from tests.support.runs import GB, filled, generations

COUNTS = {"TradingEnvironment": 2, "DDPGAgent": 17, "ReplayBuffer": 1}
PHASES = ("evaluate_population", "train_population", "evolve_population")
POINTS = ("after_evaluation", "after_training", "after_evolution")


def counts(example: Example) -> None:
    """In the running example, and at each checkpoint of a run."""
    example.until(lambda: COUNTS.items() <= example.readings().by("trainer_objects", "type").items())
    run = evolved(4)
    assert [point.label for point, _ in run.points] == ["baseline", *4 * POINTS, "end_of_training"]
    for point, alive in run.points:
        assert {name: point.objects[name] for name in alive} == alive
        assert COUNTS.items() <= alive.items()
        assert point.ages.keys() <= {"ndarray"}  # for which there may not be the time
    assert not any(run.warnings(name) for name in COUNTS)
    assert run.findings() == {1: [], 2: [], 3: [], 4: []}


def arrays(_example: Example) -> None:
    """At each checkpoint; once the buffer is full, a history a generation that leaks is one array more."""
    run = evolved(4, arrays=True, episodes=1)
    assert all(point.objects["ndarray"] == alive["ndarray"] for point, alive in run.points)
    *_, before, after = (point.objects["ndarray"] for point, _ in run.points if point.label == POINTS[-1])
    assert after - before == 1


def memory(example: Example) -> None:
    """As the system tells it; the process grows meanwhile."""
    process = psutil.Process(example.process.pid)

    def agrees(kind: str, field: str) -> bool:
        known = example.value(f"trainer_process_{kind}_memory_bytes", role="trainer")
        return abs(known - getattr(process.memory_info(), field)) < 0.1 * known

    example.until(lambda: agrees("resident", "rss") and agrees("virtual", "vms"))


def gpu(_example: Example) -> None:
    """What torch's allocator says is exposed, in this process, on any machine."""
    said = {"allocated_bytes.all.current": 2_340_000_000, "reserved_bytes.all.current": 3_000_000_000}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("is_initialized", True),
            ("device_count", 1),
            ("get_allocator_backend", "native"),
            ("memory_stats", said),
        ):
            patch.setattr(torch.cuda, name, lambda *_, value=value: value)
        watch = Watch("erl_trading")
        with said_by("heapwatch") as lines:
            point = watch.checkpoint("baseline")
        exposed = {
            (sample.name, sample.labels.get("device")): sample.value
            for family in watch.exporter.exposition.families()
            for sample in family.samples
        }
    assert exposed["trainer_gpu_memory_allocated_bytes", "0"] == 2.34e9
    assert exposed["trainer_gpu_memory_reserved_bytes", "0"] == 3e9
    assert point is not None
    assert (point.memory.gpu_allocated, point.memory.gpu_reserved) == (2.34e9, 3e9)
    assert ", GPU 2.340 GB, 3.000 GB reserved" in lines[0]


def reports(example: Example) -> None:
    """One after each generation, and none between; also where generations take no time."""
    line = re.compile(r"(?m)^Memory Report - Generation (\d+)$")
    example.until(lambda: len(line.findall(example.log())) > 3)
    assert [int(number) for number in line.findall(example.log())][:4] == [1, 2, 3, 4]
    run = evolved(4)
    assert list(run.reports()) == [1, 2, 3, 4]


def titled(example: Example, *titles: str) -> None:
    """Of the report once a generation has ended: until then it counts episodes."""
    example.until(lambda: "Gen 1: After evolve_population" in trend_of(example))
    known = [section.title for section in sections(example.report(), 30)]
    assert not [title for title in titles if not any(title in found for found in known)], known


def trend_of(example: Example) -> list[str]:
    return [row.label for row in example.report().trend]


def trend(example: Example) -> None:
    """Every phase of every generation in the order in which they end: in the record, and in each report."""
    titled(example, "BASELINE", "MEMORY SNAPSHOT", "MEMORY TREND ACROSS GENERATIONS")
    example.until(lambda: len(trend_of(example)) > 3 * 3)
    first, *others = trend_of(example)
    assert [first, *others] == ended(len(others))
    run = evolved(4)
    resident = [point.resident_bytes / 1e9 for point, _ in run.points]
    for number, report in run.reports().items():
        _, _, table = report.partition("MEMORY TREND ACROSS GENERATIONS\n")
        rows = re.findall(r"(?m)^(\S.*\S) +([\d.]+) GB +(baseline|[+-][\d.]+ GB)$", table)
        assert [label for label, _, _ in rows] == ended(3 * number)
        told = [float(gigabytes) for _, gigabytes, _ in rows]
        assert told == pytest.approx(resident[: len(told)], abs=0.01)
        changes = [float(change.split()[0]) for _, _, change in rows[1:]]
        assert changes == pytest.approx(np.diff(told), abs=0.0011)


def ended(phases: int) -> list[str]:
    """The labels of a trend of so many phases."""
    labels = [f"Gen {number + 1}: After {phase}" for number in range(phases) for phase in PHASES]
    return ["Trainer initialized (baseline)", *labels[:phases]]


def growth(example: Example) -> None:
    """In the record, and in each report of the log: from the baseline to the end of that generation."""
    titled(example, "MEMORY GROWTH ANALYSIS", "OBJECT COUNT CHANGES")
    run = evolved(6, environments=16)
    for number, report in run.reports().items():
        _, _, analysis = report.partition("MEMORY GROWTH ANALYSIS\n")
        told = {row.split()[0]: row for row in analysis.splitlines() if row}
        now = next(point for point, _ in run.points[3 * number :])
        assert size_of(told["Baseline"]) == pytest.approx(run.points[0][0].resident_bytes, abs=10e6)
        assert size_of(told["Current"]) == pytest.approx(now.resident_bytes, abs=10e6)
        for name, alive in COUNTS.items():
            more = 16 * (number - 1) if name == "TradingEnvironment" else 0
            assert re.search(rf"(?m)^  {name} +{alive} -> {alive + more} \(\+{more}\)  ", report)


def size_of(row: str) -> float:
    """The bytes that a row ends in, such as `364 MB`."""
    *_, number, unit = row.split()
    return float(number) * {"MB": 1e6, "GB": 1e9}[unit]


def large(_example: Example) -> None:
    run = generations(3, buffers=lambda n: filled(2.3e9, 3e9), sizes=lambda n: {"best_agent": 4e8})
    titled_rows = {section.title: section.rows for section in sections(analyse(run), 30, 10e6)}
    assert [name for name, *_ in titled_rows["LARGE OBJECTS"]] == ["replay", "best_agent"]


def largest(_example: Example) -> None:
    """A second run, as it comes to its end: what it prints of its largest objects, the report lists."""
    with TemporaryDirectory() as folder, finished("erl_trading", Path(folder)) as (said, record):
        found = re.findall(r"LARGE OBJECT: (\S+) +([\d.]+) MB", said)
        assert 1 <= len(found) <= 20
        text = as_text(analyse(read_recording(record)), 30)
        assert "LARGEST SINGLE OBJECTS, WHATEVER HOLDS THEM" in text
        assert all(re.search(rf"{kind} +{megabytes}", text) for kind, megabytes in found), text


def whole_run(example: Example) -> None:
    example.until(lambda: example.value("trainer_memory_baseline_bytes") > 1e7)
    limit("erl-trading", *GROWN, warning=35e9, critical=100e9)(example)
    profile = 'trainer_limit_profile{profile="erl-trading"} 1\n'
    said = []
    for grown in (30e9, 36e9, 101e9):
        text = (
            f"{profile}trainer_memory_baseline_bytes 4e9\n"
            f'trainer_process_resident_memory_bytes{{role="trainer"}} {4e9 + grown}\n'
        )
        alerts = Status(lambda: NOTHING).document(text_string_to_metric_families(text))["alerts"]
        said.append([alert["severity"] for alert in alerts if alert["component"] == GROWN.name])
    assert said == [[], ["warning"], ["critical"]]


def memory_left(example: Example) -> None:
    """What the rules and the panel make of what the example exposes."""
    text = example.metrics()
    found = re.search(r"(?m)^trainer_memory_available_bytes ([\d.e+]+)$", text)
    assert found
    available = float(found[1])
    (shown,) = (
        interpolate(one.target["expr"])
        for one in targets()
        if one.panel["title"] == "Limits" and "available_bytes" in one.target["expr"]
    )
    evaluate(
        text,
        {
            "max(job:trainer_memory:available_bytes)": {"{}": available},
            f"({shown}) == {available}": {'{component="can be used", resource="memory"}': available},
        },
    )


def will_hold(example: Example) -> None:
    example.until(lambda: example.value("trainer_buffer_capacity_bytes", buffer="replay") > 0)
    held, full = (example.value(f"trainer_buffer_{what}bytes", buffer="replay") for what in ("", "capacity_"))
    assert held <= full * 1.01


def evaluation_leaks(_example: Example) -> None:
    report = analyse(generations(6, environments=16, evaluation=7e9))
    assert finding_lines(report.finding, report.unit)[:3] == [
        "Phase: evaluate_population",
        "Growth: +7 GB per generation",
        "TradingEnvironment count: 2 -> 98 (increasing by 16 each generation)",
    ]


def training_leaks(_example: Example) -> None:
    """In a run of its own, with 30 losses a generation, 1 MB each: what is found is what its log counted."""
    with TemporaryDirectory() as folder:
        leaking = Example("erl_trading", Path(folder), "--rate=200", "--leak=tensors=900")
        try:
            leaking.until(lambda: "LEAK FOUND:\nPhase: train_population" in leaking.log())
            before, _, told = leaking.log().partition("LEAK FOUND:\n")
        finally:
            leaking.stop()
    counted = [
        int(count) for count in re.findall(r"(?m)^checkpoint after_evolution: .*, Tensor (\d+)", before)
    ]
    number = len(re.findall("Memory Report", before))
    told_count = re.search(
        r"(?m)^Tensor count: (\d+) -> (\d+) \(increasing by ([\d.]+) each generation\)$", told
    )
    assert told_count, told
    assert int(told_count[2]) == counted[number - 1]
    rate = (counted[number - 1] - counted[0]) / (number - 1)
    assert float(told_count[3]) == pytest.approx(rate, rel=0.1)
    growth = re.search(r"(?m)^Growth: \+([\d.]+ MB) per generation$", told)
    assert growth, told
    states, hidden, floats = 512, 64, 4
    assert size_of(growth[1]) == pytest.approx(30 * states * (STATE + hidden) * floats, rel=0.25)
    assert "\nStarted at generation 1\n" in told


def evolution_leaks(_example: Example) -> None:
    """Said in the generation itself: one more than expected, and then each doubling; 17 are not said."""
    run = evolved(4)
    assert not run.warnings("DDPGAgent")
    for leaked in (1, 16):
        run = evolved(3, population=leaked)
        (first,) = run.warnings("DDPGAgent")  # the next one would be at twice as many
        assert first == f"DDPGAgent: {17 + leaked} are alive, 17 expected"
        assert not Evolved(lines=run.lines[: run.lines.index(first)]).reports()
        assert run.findings() == {
            number: found("evolve_population", "DDPGAgent", 17, leaked, 1, number) for number in (1, 2, 3)
        }


def found(phase: str, name: str, expected: int, leaked: int, since: int, number: int) -> list[str]:
    """What is found in a generation if so many leak in each since one: more than a tenth past the bound."""
    alive = expected + leaked * (number - since + 1)
    if alive <= 1.1 * expected:
        return []
    rate = f"past its bound of {expected}, increasing by {leaked} each generation"
    return [
        f"Phase: {phase}",
        f"{name} count: {expected} -> {alive} ({rate})",
        f"Started at generation {since}",
    ]


def no_leak(_example: Example) -> None:
    """1.7 GB a generation, as the buffer takes."""
    buffers = {"buffers": lambda n: filled((1 + 1.7 * n) * GB, 30 * GB)}
    report = analyse(generations(11, other=0.85 * GB, **buffers))
    assert (report.finding, report.memory.verdict) == (None, "filling")


def report_of_a_leak(example: Example) -> None:
    """From the first generation that leaks on, and in the log of the running example."""
    for leaked, trained in ((1, 3), (16, 6)):
        run = evolved(trained, environments=leaked)
        assert run.findings() == {
            number + 1: found("evaluate_population", "TradingEnvironment", 2, leaked, 2, number + 1)
            for number in range(trained)
        }
    told = re.search(r"(?m)^Growth: \+([\d.]+ MB) per generation$", run.reports()[6])
    assert told
    kept = 16 * make_market(0).nbytes
    assert size_of(told[1]) == pytest.approx(kept, rel=0.2)
    with example.leaking(environments=900.0):
        named = r"LEAK FOUND:\nPhase: evaluate_population\n(.+\n)?TradingEnvironment count: 2 -> \d+ "
        example.until(lambda: re.search(named, example.log()))


def sites(example: Example) -> None:
    """The line of the example that keeps environments."""

    def reported() -> bool:
        found = {str(one["path"]): one["site"] for one in example.explain()["findings"]}
        site = next((site for path, site in found.items() if "environments" in path), None)
        return site is not None and (site["file"].rpartition("/")[2], site["function"]) == (
            "leaking.py",
            "Leaks.in_evaluation",
        )

    with example.leaking(environments=900.0):
        example.until(reported)


def host_memory(example: Example) -> None:
    memory = example.status()["memory"]
    assert 0 < memory["available_bytes"] <= memory["limit_bytes"]


def resumed(_example: Example) -> None:
    with TemporaryDirectory() as folder:
        with finished("erl_trading", Path(folder)) as (said, _record):
            assert "resumed" not in said
        with finished("erl_trading", Path(folder), "--resume", steps=400) as (said, _record):
            assert "resumed from the checkpoint of generation 2\n" in said
            assert "Memory Report - Generation 3\n" in said


def uploads(example: Example) -> None:
    """More than 50 that wait are an alert, until the uploads are done."""

    def alert() -> bool:
        found = [one["limit"] for one in example.status()["alerts"] if one["component"] == "upload_queue"]
        return 51 in found

    labels("trainer_event_list_capacity_items", "list", "upload_queue")(example)
    assert example.value("trainer_event_list_capacity_items", list="upload_queue") == 50
    assert not alert()
    with example.leaking(uploads=6000.0):
        example.until(alert)
    example.until(lambda: not alert())


def checkpoint_lines(example: Example) -> None:
    """Each has the address space and the counts of its moment, arrays among them."""
    for label in ("baseline", *POINTS):
        line = rf"(?m)^checkpoint {label}: [\d.]+ GB, .*VMS [\d.]+ GB, TradingEnvironment 2, DDPGAgent 17, .*"
        example.until(lambda line=line: re.search(line, example.log()))
    run = evolved(6, environments=16)
    lines = [line for line in run.lines if line.startswith("checkpoint ")]
    for line, (point, alive) in zip(lines, run.points, strict=True):
        assert line.startswith(f"checkpoint {point.label}: {point.resident_bytes / 1e9:.3f} GB, ")
        assert all(f", {name} {count}" in line for name, count in alive.items())
        assert ("earlier" in line) == bool(point.ages)


def end_of_the_log(example: Example) -> None:
    with TemporaryDirectory() as folder:
        log = Path(folder) / "train.log"
        log.write_text("".join(f"line {number}\n" for number in range(1000)))
        command = ("-m", "heapwatch", "report", str(example.record), "--log", str(log))
        said = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False).stdout
    *_, end = said.partition("LAST 50 LINES OF THE LOG\n")
    assert re.findall(r"(?m)^line (\d+)$", end) == [str(number) for number in range(950, 1000)]


def freed(example: Example) -> None:
    replay = example.value("trainer_buffer_items", buffer="replay")
    answer = example.force_cleanup()
    assert answer["removed"]["environments"] > 0
    assert answer["after"]["buffers"]["replay"] >= min(replay, 1000)


def stopped(example: Example) -> None:
    """At SIGTERM, and of the moment at which it came: in the middle of an evaluation that leaks."""
    example.stop()
    *_, summary = example.log().split("Memory Report - Generation")
    assert re.search(r"RAM: +[\d.]+ GB -> [\d.]+ GB", summary), summary
    assert len(re.findall(r"LARGE OBJECT: \S+ +[\d.]+ MB", summary)) > 0
    run = evolved(3.5, ends=False, environments=16, population=16)
    baseline, _ = run.points[0]
    assert (run.alive["TradingEnvironment"], run.alive["DDPGAgent"]) == (2 + 3 * 16, 17 + 3 * 16)
    for name, alive in run.alive.items():
        before = round(baseline.objects[name])
        assert f"\n  {name:<20} {before} -> {alive} ({alive - before:+})\n" in run.printed


CHECKS: dict[str, Check] = {
    "RSS and VMS of the process": memory,
    "GPU memory, allocated and reserved": gpu,
    "live objects: 2 environments, 17 agents, 1 buffer": counts,
    "lists, dicts and tensors": labels("trainer_objects", "type", "list", "dict", "Tensor"),
    "baseline and a snapshot after evaluation, training and evolution": checkpoint_lines,
    "the trend across generations": trend,
    "growth since the baseline, object count changes": growth,
    "the largest objects": large,
    "the top 20 objects of 10 MB or more, whatever holds them": largest,
    "total growth: 25 to 35 GB is normal, 100 GB or more a leak": whole_run,
    "a report after each generation": reports,
    "more than +5 GB a generation is a leak": limit("erl-trading", "memory", "trainer", generation=5e9),
    "~500 MB a generation after the fixes": limit(
        "erl-trading-aggressive", "memory", "trainer", generation=500e6
    ),
    "GPU memory stable under 20 GB": limit("erl-trading", "gpu_memory", "", warning=20e9),
    "30 to 40 GB is stable, the run with 175 GB was killed": limit(
        "erl-trading", "memory", "trainer", warning=40e9, critical=100e9
    ),
    "30 agents or more are a leak": limit("erl-trading", "objects", "DDPGAgent", warning=30),
    "`Buffer not ready: 6960 / 10000`": will_hold,
    "histories: fitness, generation times": labels(
        "trainer_event_list_items", "list", "fitness_history", "generation_times"
    ),
    "upload queue, more than 50 pending": uploads,
    "figures that are not closed": labels("trainer_objects", "type", "Figure"),
    "`free -h`: memory left on the host": host_memory,
    "memory left, in the forecast and on a panel": memory_left,
    "what to report: phase, growth, counts, since when": report_of_a_leak,
    "what to report: the last 50 lines of the log": end_of_the_log,
    "`--resume` from the checkpoint of a generation": resumed,
    "scenario 1: evaluation leaks environments": evaluation_leaks,
    "scenario 2: training leaks tensors": training_leaks,
    "scenario 3: evolution leaks agents": evolution_leaks,
    "scenario 4: no leak while the buffer fills": no_leak,
    "tracemalloc: where it was allocated": sites,
    "old environments and agents deleted, buffer kept": freed,
    "NumPy arrays": arrays,
    "the final summary: growth since the baseline, large objects": stopped,
}
