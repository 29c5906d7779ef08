"""Memory leak fixes report: the DQN that places fuel breaks."""

import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import yaml

from examples.fire_dqn.agent import DQNAgent
from examples.fire_dqn.trainer import FireTrainer
from heapwatch.analysis.readings import ExceededLimit
from heapwatch.cli.reporter import described
from heapwatch.recording.points import Run
from heapwatch.report.document import finding_lines
from heapwatch.report.findings import analyse
from tests.documents.example import SECONDS, Example
from tests.documents.rows import Row, labels, limit, logs
from tests.exporters.report.runs import generations
from tests.repository import REPOSITORY

BOUNDS = {"losses": 1000, "rewards": 1000, "step_times": 100, "collection_times": 20}


def bounds(example: Example) -> None:
    capacities = "trainer_event_list_capacity_items"
    example.until(lambda: BOUNDS.items() <= example.readings().by(capacities, "list").items())


def methods(_example: Example) -> None:
    assert callable(DQNAgent.cleanup_memory)
    assert callable(DQNAgent.reset_memory)
    assert callable(FireTrainer.clear_local_buffer)
    agent = DQNAgent()
    agent.rewards.append(1.0)
    agent.reset_memory()
    assert not agent.rewards
    assert not agent.memory.buffer


def detached(example: Example) -> None:
    example.until(lambda: example.value("trainer_buffer_items", buffer="memory") > 20)
    example.until(lambda: not math.isnan(example.value("trainer_buffer_graph_tensors", buffer="memory")))
    assert example.value("trainer_buffer_graph_tensors", buffer="memory") == 0
    assert example.value("trainer_buffer_attached_tensors", buffer="memory") == 0


def figures(example: Example) -> None:
    with example.leaking(figures=120.0):
        example.until(lambda: example.value("trainer_objects", type="Figure") > 2)
    assert example.force_cleanup("regular")["removed"]["figures"] > 2
    example.until(lambda: example.value("trainer_objects", type="Figure") == 0)


def steady(example: Example) -> None:
    example.until(lambda: len(example.report().trend) > 5)
    assert {row.phase for row in example.report().trend} >= {"episode"}


def constant(_example: Example) -> None:
    limits = {"memory/trainer/episode": 1e6}
    for growth, leaks in ((0.0, False), (3e6, True)):
        points = [
            replace(point, progress={"episode": point.progress.get("generation", 0)}, growth_limits=limits)
            for point in generations(60, evaluation=growth).points
        ]
        assert (analyse(Run("fire_dqn", tuple(points))).finding is not None) == leaks


def explained(example: Example) -> None:
    """The buffer is full of tensors that keep their graphs, and stays so for two minutes."""
    with example.leaking(attached=3000.0):
        example.until(lambda: held_graphs(example), 2 * SECONDS)
        said = example.run(sys.executable, "-m", "heapwatch", "explain")
    assert "memory.buffer" in said
    assert "detach().cpu()" in said


def held_graphs(example: Example) -> bool:
    document = example.explain()
    return document["verdict"] == "leak" and any(
        str(found["path"]).endswith("memory.buffer") and "detach().cpu()" in found["remedy"]
        for found in document["findings"]
        if found["is_leak"]
    )


def losses_past_their_bound(example: Example) -> None:
    with example.leaking(losses=60_000.0):
        example.until(lambda: example.value("trainer_event_list_items", list="losses") > 1100)
    alerts = {(alert["resource"], alert["component"]) for alert in example.status()["alerts"]}
    assert ("events", "losses") in alerts


def graphs(example: Example) -> None:
    with example.leaking(attached=600.0):
        example.until(lambda: example.value("trainer_buffer_graph_tensors", buffer="memory") > 5)
    assert example.status()["buffers"]["memory"]["graph_tensors"] > 5


def graphs_alert(_example: Example) -> None:
    files = sorted(Path(REPOSITORY / "prometheus" / "rules").glob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    (rule,) = [
        rule for group in groups for rule in group["rules"] if rule.get("alert") == "TrainerBufferHoldsGraphs"
    ]
    assert rule["labels"]["kind"] == "leak"
    assert "detach().cpu()" in rule["annotations"]["description"]


def graphs_reported(example: Example) -> None:
    def lines() -> list[str]:
        finding = example.report().finding
        return [] if finding is None else finding_lines(finding, "episode")

    named = r"memory buffer: \d+ tensors hold the autograd graph they were computed with"
    with example.leaking(attached=3000.0):
        example.until(lambda: any(re.fullmatch(named, line) for line in lines()))
        assert any(line.startswith("Remedy: store `tensor.detach().cpu()`") for line in lines())


def graphs_console(_example: Example) -> None:
    alert = ExceededLimit("warning", "graphs", "buffer", "memory", 177, 0.0)
    assert described(alert).startswith(
        "WARNING: buffer memory: 177 tensors keep their autograd graphs; store"
    )


def cleaned(example: Example) -> None:
    removed = example.force_cleanup("regular")["removed"]
    assert removed["attached"] > 0
    assert removed["losses"] > 0
    example.until(lambda: example.value("trainer_buffer_graph_tensors", buffer="memory") == 0)


ROWS = (
    Row(
        "losses and rewards: 1000 entries, step times 100, collection times 20",
        "`trainer_event_list_capacity_items`",
        "`curl URL/metrics`",
        bounds,
    ),
    Row(
        "experience buffer: 2000 entries",
        '`watch.buffer("experience", …, capacity=2000)`',
        "`curl URL/metrics`",
        labels("trainer_buffer_capacity_items", "buffer", "experience", "memory"),
    ),
    Row(
        "more than these is flagged",
        "profile `fire-dqn`",
        "`docs/alerting.md`",
        limit("fire-dqn", "events", "losses", warning=1100),
    ),
    Row(
        "`cleanup_memory()`, `reset_memory()`, `clear()`, `clear_local_buffer()`",
        "the same methods of the example",
        "`examples/fire_dqn/agent.py`",
        methods,
    ),
    Row(
        "every 50 steps: experience collector",
        "`heapwatch.housekeeping.Schedule`",
        "`python -m examples.fire_dqn`",
        logs("Cleanup after 50 steps: experience buffer"),
    ),
    Row(
        "every 100 training steps: GPU memory",
        "likewise",
        "`python -m examples.fire_dqn`",
        logs("Cleanup after 100 updates"),
    ),
    Row(
        "every 10 episodes: everything, with a message",
        "likewise",
        "`python -m examples.fire_dqn`",
        logs("Performing memory cleanup (10 episodes)", "agent memory", "experience buffer"),
    ),
    Row(
        "tensors detached and on the CPU",
        "`trainer_buffer_attached_tensors`, `trainer_buffer_graph_tensors` are 0",
        "`curl URL/metrics`",
        detached,
    ),
    Row(
        "figures closed",
        '`heapwatch.housekeeping.close_figures`; `trainer_objects{type="Figure"}`',
        "`python -m examples.leak fire_dqn figures=2`",
        figures,
    ),
    Row(
        "memory by episode", "phase `episode`; `heapwatch report`", "`heapwatch report run.jsonl.gz`", steady
    ),
    Row(
        "memory constant from episode to episode, for more than 60",
        '`watch.growth_limit("memory", "trainer", per_episode=1e6)`',
        "`heapwatch report run.jsonl.gz`",
        constant,
    ),
    Row(
        "the same without a declared limit",
        "profile `fire-dqn`: memory, 10 MB an episode",
        "`docs/alerting.md`; page Phases",
        limit("fire-dqn", "memory", "trainer", episode=10e6),
    ),
    Row(
        "the same on a GPU",
        "profile `fire-dqn`: GPU memory, 10 MB an episode",
        "`docs/alerting.md`; page Phases",
        limit("fire-dqn", "gpu_memory", "", episode=10e6),
    ),
    Row(
        "unbounded losses",
        "an alert past the bound",
        "`python -m examples.leak fire_dqn losses=3000`",
        losses_past_their_bound,
    ),
    Row(
        "tensors with gradients in the replay buffer",
        "`trainer_buffer_graph_tensors`",
        "`python -m examples.leak fire_dqn attached=60`",
        graphs,
    ),
    Row(
        "they are the leak",
        "alert `TrainerBufferHoldsGraphs`, with the remedy",
        "[runbook](../runbooks/TrainerBufferHoldsGraphs.md)",
        graphs_alert,
    ),
    Row(
        "they are in the alerts of the status and the console",
        "kind `graphs`, after ten minutes",
        "`heapwatch monitor`",
        graphs_console,
    ),
    Row(
        "what to do about them",
        "verdict `leak`, the path of the buffer and the remedy",
        "`heapwatch explain URL`",
        explained,
    ),
    Row(
        "they are named in the report",
        "`heapwatch report`: the buffer and the remedy",
        "`heapwatch report run.jsonl.gz`",
        graphs_reported,
    ),
    Row("cleanup brings all back", "`watch.on_cleanup`", "`POST /force_cleanup`", cleaned),
)
