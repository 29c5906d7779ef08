"""Memory leak fixes report: the DQN that places fuel breaks."""

import math
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import torch
from prometheus_client.parser import text_string_to_metric_families

from examples.fire_dqn.agent import Transition
from examples.fire_dqn.trainer import FireTrainer
from heapwatch.cli.reporter import Reporter, Sample
from heapwatch.collectors.readings import Readings
from heapwatch.explain.findings import Explanation
from heapwatch.http.status import Status
from heapwatch.judge.trainer import TrainerJudge
from heapwatch.recording.points import Run
from heapwatch.report.document import finding_lines
from heapwatch.report.findings import analyse
from heapwatch.watch import Watch
from tests.documents.example import SECONDS, Example, own_state
from tests.documents.rows import Check, both, limit
from tests.documents.rules import evaluate
from tests.exporters.report.runs import generations

BOUNDS = {"losses": 1000, "rewards": 1000, "step_times": 100, "collection_times": 20}
ADDRESS = "example:7777"


def bounds(example: Example) -> None:
    """They are exported, and kept: two of them are reached."""
    capacities, items = "trainer_event_list_capacity_items", "trainer_event_list_items"
    example.until(lambda: BOUNDS.items() <= example.readings().by(capacities, "list").items())
    example.until(lambda: example.value(items, list="step_times") == 100)
    example.until(lambda: example.value(items, list="collection_times") == 20)


def experience(example: Example) -> None:
    found = example.readings().by("trainer_buffer_capacity_items", "buffer")
    assert {name: found[name] for name in ("experience", "memory")} == {"experience": 2000, "memory": 1000}
    with own_state():
        trainer = FireTrainer(rate=None)
        trainer.collected = [transition(trainer)] * 2500
        trainer.train(Watch("fire_dqn"), 10)
        assert len(trainer.collected) <= 2000


def methods(_example: Example) -> None:
    with own_state():
        trainer = FireTrainer(rate=None)
    agent = trainer.agent
    agent.losses, agent.rewards = [0.0] * 1500, [1.0] * 1500
    agent.memory.buffer = [transition(trainer)] * 1500
    agent.cleanup_memory()
    assert [len(held) for held in (agent.losses, agent.rewards, agent.memory.buffer)] == [1000, 1000, 1000]
    agent.reset_memory()
    assert not [held for held in (agent.losses, agent.rewards, agent.memory.buffer) if held]
    trainer.collected, trainer._pending = [transition(trainer)] * 7, 3
    trainer.clear_local_buffer()
    assert not trainer.collected
    assert len(agent.memory.buffer) == 3
    agent.memory.clear()
    assert not agent.memory.buffer


def transition(trainer: FireTrainer) -> Transition:
    state = torch.from_numpy(trainer.grid.reset())
    return Transition(state, 0, 0.0, state, False)


def every(count: int, unit: str, text: str) -> Callable[[Example], None]:
    """A check that the log has this after every so many steps, updates or episodes, and at no others."""
    line = re.compile(rf"(?m)^{text}")

    def check(example: Example) -> None:
        example.until(lambda: len(line.findall(example.log())) > 2)
        found = [int(number) for number in line.findall(example.log())]
        assert found == list(range(count, count * (len(found) + 1), count)), unit

    return check


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
    rows = example.report().trend[1:]
    assert {row.phase for row in rows} == {"episode"}
    assert all(before.cycle < after.cycle for before, after in pairwise(rows))


def constant(_example: Example) -> None:
    """More than its limit an episode is a leak, in a run of sixty."""
    limits = {"memory/trainer/episode": 1e6}
    for growth, leaks in ((0.0, False), (3e6, True)):
        points = [
            replace(point, progress={"episode": point.progress.get("generation", 0)}, growth_limits=limits)
            for point in generations(60, evaluation=growth).points
        ]
        assert (analyse(Run("fire_dqn", tuple(points))).finding is not None) == leaks


def stopped(example: Example) -> None:
    """At SIGTERM the trainer cleans up, and its last line does not contradict the leak that it reported."""
    before = example.log().count("LEAK FOUND:")
    with example.leaking(attached=3000.0):
        example.until(lambda: example.log().count("LEAK FOUND:") > before)
        example.stop()
    *before_end, cleanup, last = example.log().splitlines()
    assert cleanup.startswith("Performing memory cleanup (end of training): ")
    ended = re.fullmatch(r"fire_dqn has ended: leak: (.+?)(?: \(report of episode \d+\))?", last)
    assert ended, last
    assert ended[1] in before_end or re.search("memory.*graph", ended[1]), last


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
    alerts = {
        (alert["resource"], alert["component"], alert["limit"])
        for alert in example.status()["alerts"]
        if alert["kind"] == "threshold"
    }
    assert ("events", "losses", 1001) in alerts


def with_graphs(example: Example) -> str:
    """What it exposes once most of its memory holds tensors with their graphs."""

    def most() -> bool:
        tensors = example.value("trainer_buffer_graph_tensors", buffer="memory")
        return tensors > 0.6 * example.value("trainer_buffer_items", buffer="memory")

    with example.leaking(attached=12_000.0):
        example.until(most)
    return example.metrics()


def without_graphs(example: Example) -> str:
    """What it exposes after a cleanup."""
    example.force_cleanup("regular")
    example.until(lambda: example.value("trainer_buffer_graph_tensors", buffer="memory") == 0)
    return example.metrics()


def graphs(example: Example) -> None:
    with_graphs(example)
    assert example.status()["buffers"]["memory"]["graph_tensors"] > 5
    without_graphs(example)
    assert example.status()["buffers"]["memory"]["graph_tensors"] == 0


def graphs_alert(example: Example) -> None:
    """The alert of what the example exposes, were it so for twenty minutes, and after a cleanup none."""
    firing = 'count by (kind) (ALERTS{alertname="TrainerBufferHoldsGraphs", component="memory"})'
    evaluate(with_graphs(example), {firing: {'{kind="leak"}': 1}})
    evaluate(without_graphs(example), {firing: {}})


def graphs_reported(example: Example) -> None:
    def lines() -> list[str]:
        finding = example.report().finding
        return [] if finding is None else finding_lines(finding, "episode")

    named = r"memory buffer: \d+ tensors hold the autograd graph they were computed with"
    with example.leaking(attached=3000.0):
        example.until(lambda: any(re.fullmatch(named, line) for line in lines()))
        assert any(line.startswith("Remedy: store `tensor.detach().cpu()`") for line in lines())


def graphs_console(example: Example) -> None:
    """The lines of a monitor that saw for a quarter of an hour what the example exposes now."""
    exposed = [with_graphs(example), without_graphs(example)]
    reported = []
    for text in exposed:
        now = [time.time()]
        judge, reporter = TrainerJudge(), Reporter()

        def explanation(judge: TrainerJudge = judge) -> Explanation:
            return Explanation("leak" if judge.leaks else "too early", 0.0, 0.0, 0.0, leaks=judge.leaks)

        status = Status(explanation, clock=lambda now=now: now[0])  # type: ignore[misc]
        families, said = list(text_string_to_metric_families(text)), []
        for _ in range(0, 900, 30):
            now[0] += 30
            judge.observe(now[0], Readings(families).sample(now[0]))
            said += reporter.report(Sample(ADDRESS, now[0], status.document(families)))
        reported.append([message.text for message in said])
    line = (
        r"WARNING: buffer memory: \d+ tensors keep their autograd graphs; store tensor.detach\(\).cpu\(\).*"
    )
    assert [bool(any(re.fullmatch(line, text) for text in texts)) for texts in reported] == [True, False]


def cleaned(example: Example) -> None:
    with example.leaking(attached=600.0, losses=60_000.0):
        example.until(lambda: example.value("trainer_buffer_graph_tensors", buffer="memory") > 5)
        example.until(lambda: example.value("trainer_event_list_items", list="losses") > 1100)
    removed = example.force_cleanup("regular")["removed"]
    assert removed["attached"] > 0
    assert removed["losses"] > 0
    assert example.force_cleanup("regular")["removed"]["attached"] == 0
    example.until(lambda: example.value("trainer_buffer_graph_tensors", buffer="memory") == 0)


CHECKS: dict[str, Check] = {
    "losses and rewards: 1000 entries, step times 100, collection times 20": bounds,
    "experience buffer: 2000 entries": experience,
    "more than these is flagged": both(
        *(limit("fire-dqn", "events", name, warning=bound + 1) for name, bound in BOUNDS.items()),
        limit("fire-dqn", "buffer", "experience", warning=2001),
    ),
    "`cleanup_memory()`, `reset_memory()`, `clear()`, `clear_local_buffer()`": methods,
    "every 50 steps: experience collector": every(
        50, "step", r"Cleanup after step (\d+): experience buffer \d+$"
    ),
    "every 100 training steps: GPU memory": every(
        100, "update", r"Cleanup after update (\d+): (?:no GPU|GPU memory .*)$"
    ),
    "every 10 episodes: everything, with a message": every(
        10,
        "episode",
        r"Performing memory cleanup \(after episode (\d+)\): .+, agent memory \d+, experience buffer \d",
    ),
    "tensors detached and on the CPU": detached,
    "figures closed": figures,
    "memory by episode": steady,
    "memory constant from episode to episode, for more than 60": constant,
    "the same without a declared limit": limit("fire-dqn", "memory", "trainer", episode=10e6),
    "the same on a GPU": limit("fire-dqn", "gpu_memory", "", episode=10e6),
    "unbounded losses": losses_past_their_bound,
    "tensors with gradients in the replay buffer": graphs,
    "they are the leak": graphs_alert,
    "they are in the alerts of the status and the console": graphs_console,
    "what to do about them": explained,
    "they are named in the report": graphs_reported,
    "cleanup frees everything": cleaned,
    "final cleanup at the end of training": stopped,
}
