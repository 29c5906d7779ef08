"""Memory leak fixes report: the DQN that places fuel breaks."""

import math
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from itertools import count, pairwise

import pytest
import torch
from prometheus_client.parser import text_string_to_metric_families

from examples.fire_dqn.agent import Transition
from examples.fire_dqn.trainer import FireTrainer
from heapwatch.cli.reporter import Reporter
from heapwatch.collectors.readings import Readings
from heapwatch.explain.findings import Explanation
from heapwatch.http.status import Status
from heapwatch.judge.trainer import TrainerJudge
from heapwatch.recording.points import Run
from heapwatch.report.document import finding_lines, headline
from heapwatch.report.findings import analyse
from tests.documents.example import SECONDS, Example, own_state
from tests.documents.rows import Check, both, limit
from tests.documents.rules import evaluate
from tests.support.runs import generations

BOUNDS = {"losses": 1000, "rewards": 1000, "step_times": 100, "collection_times": 20}
ADDRESS = "example:7777"


def bounds(example: Example) -> None:
    """They are exported, and kept: two of them are reached."""
    capacities, items = "trainer_event_list_capacity_items", "trainer_event_list_items"
    example.until(lambda: BOUNDS.items() <= example.readings().by(capacities, "list").items())
    example.until(lambda: example.value(items, list="step_times") == 100)
    example.until(lambda: example.value(items, list="collection_times") == 20)


def kept(_example: Example) -> None:
    """One entry below the bound, at it, and past it: the newest are kept."""
    with trained() as trainer:
        agent = trainer.agent
        added: dict[str, Callable[[], object]] = {
            "losses": lambda: agent.losses,
            "rewards": lambda: agent.rewards,
            "step_times": lambda: trainer.step_times,
            "collection_times": lambda: trainer.collection_times,
        }
        for name, bound in BOUNDS.items():
            held = added[name]()
            assert isinstance(held, deque)
            assert held.maxlen == bound
            held.extend([0.0] * (bound - 1 - len(held)))
            for length in (bound, bound, bound):
                held.append(1.0)
                assert len(held) == length
            assert list(held)[-3:] == [1.0] * 3


class Steps:
    """A watch that calls a function after each step, and one after each episode."""

    def __init__(self, step: Callable[[], object], episode: Callable[[], object] = lambda: None) -> None:
        self.step = step
        self._episode = episode

    def phase(self, _name: str) -> AbstractContextManager[None]:
        return nullcontext()

    def progress(self, _unit: str) -> None:
        self._episode()


@contextmanager
def trained() -> Iterator[FireTrainer]:
    """The example in this process."""
    with own_state():
        torch.set_num_threads(1)  # as the example does
        yield FireTrainer(rate=None)


def experience(example: Example) -> None:
    """2000 transitions are kept, and of 2001 the newest 2000."""
    found = example.readings().by("trainer_buffer_capacity_items", "buffer")
    assert {name: found[name] for name in ("experience", "memory")} == {"experience": 2000, "memory": 1000}
    lengths = []
    with trained() as trainer:
        old = transition(trainer)
        trainer.collected = [old] * 1996
        trainer.train(Steps(lambda: lengths.append(len(trainer.collected))), 10)  # type: ignore[arg-type]
    assert lengths == [1997, 1998, 1999, *[2000] * 7]


def everything(_example: Example) -> None:
    """What agent and collector hold too much is gone after episodes 10, 20 and 30, and at no others."""
    steps, episodes = count(1), count(1)
    cleaned: dict[str, list[int]] = {name: [] for name in ("agent", "collector", "times", "device", "all")}
    with trained() as trainer, pytest.MonkeyPatch.context() as patch:
        agent, old = trainer.agent, transition(trainer)

        def spoil() -> None:
            if isinstance(agent.losses, deque):
                agent.losses = [0.0] * 1500
            if not any(one is old for one in trainer.collected):
                trainer.collected[:0] = [old] * 7

        def step() -> None:
            number = next(steps)
            if isinstance(trainer.step_times, deque):  # cut after the step before, if it was spoilt
                if number > 1:
                    assert (len(trainer.step_times), trainer.step_times.maxlen) == (100, 100)
                    cleaned["times"].append(number - 1)
                trainer.step_times = [0.0] * 150  # type: ignore[assignment]

        def episode() -> None:
            number = next(episodes)
            if len(agent.losses) <= 1000:
                cleaned["agent"].append(number)
            if not any(one is old for one in trainer.collected):
                cleaned["collector"].append(number)
            spoil()

        patch.setattr(
            "examples.fire_dqn.trainer.empty_cuda_cache", lambda: cleaned["device"].append(agent.updates)
        )
        patch.setattr(
            "examples.fire_dqn.agent.empty_cuda_cache", lambda: cleaned["all"].append(trainer.episodes)
        )
        spoil()
        trainer.train(Steps(step, episode), 380)  # type: ignore[arg-type]
        assert not trainer.collected, "at the end of training, too"
        assert len(agent.losses) <= 1000
    wanted = {
        "agent": [10, 20, 30],
        "collector": [10, 20, 30],
        "times": list(range(50, 351, 50)),
        "device": [100, 200, 300],
        "all": [10, 20, 30, 38],
    }
    assert cleaned == wanted, cleaned


def methods(_example: Example | None) -> None:
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


def every(interval: int, unit: str, text: str) -> Callable[[Example], None]:
    """A check that the log has this after every so many steps, updates or episodes, and at no others."""
    line = re.compile(rf"(?m)^{text}")

    def check(example: Example) -> None:
        example.until(lambda: len(line.findall(example.log())) > 2)
        found = [int(number) for number in line.findall(example.log())]
        assert found == list(range(interval, interval * (len(found) + 1), interval)), unit

    return check


def messages(example: Example) -> None:
    """The sizes that a cleanup prints are those of then: ten transitions of each episode."""
    text = r"\(after episode (\d+)\): (.+), agent memory (\d+), experience buffer (\d+)"
    line = re.compile(rf"(?m)^Performing memory cleanup {text}$")
    example.until(lambda: len(line.findall(example.log())) > 2)
    for episode, gpu, memory, collected in line.findall(example.log()):
        assert int(memory) == min(1000, 10 * int(episode))
        assert int(collected) == 0
        assert re.fullmatch(r"no GPU|GPU memory [\d.]+ MB allocated, [\d.]+ MB reserved", gpu)


def without_graph(_example: Example | None) -> None:
    """What is pushed has a graph, and what is stored has none."""
    with trained() as trainer:
        pushed = transition(trainer)
        weight = torch.ones(1, requires_grad=True)
        graphs = pushed._replace(state=pushed.state * weight, next_state=pushed.next_state * weight)
        assert graphs.state.grad_fn is not None
        trainer.agent.memory.push(graphs)
        stored = trainer.agent.memory.buffer[-1]
        for state in (stored.state, stored.next_state):
            assert (state.requires_grad, state.grad_fn, state.device.type) == (False, None, "cpu")


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
    """In more than sixty episodes growth of the limit in each is no leak, and of a kilobyte more is one.

    They take three minutes, in which nothing else can be said of memory.
    """
    limits = {"memory/trainer/episode": 1e6}
    for growth, leaks in ((0.0, False), (1e6, False), (1.001e6, True)):
        points = [
            replace(
                point,
                time=point.time / 60,
                progress={"episode": point.progress.get("generation", 0)},
                growth_limits=limits,
            )
            for point in generations(61, start=5e8, evaluation=growth).points
        ]
        assert (analyse(Run("fire_dqn", tuple(points))).finding is not None) == leaks


def stopped(example: Example) -> None:
    """At SIGTERM the trainer cleans up, and its last line is that of the report of its record."""
    example.force_cleanup()
    with example.leaking(losses=60_000.0):
        example.until(lambda: example.value("trainer_event_list_items", list="losses") > 2000)
        example.stop()
    cleanup, last = example.log().splitlines()[-2:]
    assert cleanup.startswith("Performing memory cleanup (end of training): ")
    reported = f"fire_dqn has ended: {headline(example.report())}"
    same = [re.sub(r"[\d.,]+", "0", line) for line in (last, reported)]
    assert same[0] == same[1]
    assert last.startswith("fire_dqn has ended: leak: "), last


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
    """They are a leak on every surface, since the episode in which they began to be."""

    def length() -> float:
        return example.value("trainer_event_list_items", list="losses")

    def episode() -> float:
        return example.value("trainer_progress_total", unit="episode")

    def found() -> bool:
        return any(one["type"] == "events losses" and one["is_leak"] for one in example.explain()["findings"])

    example.force_cleanup()
    example.until(lambda: length() == 1000)
    began = episode()
    with example.leaking(losses=6000.0):
        example.until(lambda: length() > 1000)
        reached = episode()
        example.until(lambda: length() > 1100)
        example.until(found)
        said = example.run(sys.executable, "-m", "heapwatch", "monitor", "--count", "1")
        report = example.report()
        alerts = example.status()["alerts"]
    assert "leak: " in said, said
    assert re.search(r"WARNING: events losses = \d+ \(>= 1001\)", said), said
    assert not re.search("healthy|too early", said)
    limits = {
        (one["resource"], one["component"], one["limit"]) for one in alerts if one["kind"] == "threshold"
    }
    assert ("events", "losses", 1001) in limits
    assert report.verdict == report.objects["losses events"].verdict == "leak"
    assert report.finding is not None
    assert began <= report.objects["losses events"].since <= reached + 1


def with_graphs(example: Example) -> str:
    """What it exposes while most of its memory holds tensors with their graphs."""
    with example.leaking(attached=12_000.0):
        return exposed(example, lambda tensors, items: tensors > 0.6 * items)


def without_graphs(example: Example) -> str:
    """What it exposes after a cleanup."""
    example.force_cleanup("regular")
    return exposed(example, lambda tensors, _: tensors == 0)


def exposed(example: Example, holds: Callable[[float, float], bool]) -> str:
    """An exposition in which this is so of the tensors with graphs and the items of the memory."""
    found: list[str] = []

    def seen() -> bool:
        found.append(example.metrics())
        now = Readings(text_string_to_metric_families(found[-1]))
        values = (now.value(f"trainer_buffer_{what}", buffer="memory") for what in ("graph_tensors", "items"))
        tensors, items = (float("nan") if value is None else value for value in values)
        return holds(tensors, items)

    example.until(seen)
    return found[-1]


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
            said += reporter.report(now[0], status.document(families))
        reported.append([line.strip() for line in said])
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
    "losses and rewards: 1000 entries, step times 100, collection times 20": both(bounds, kept),
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
    "every 10 episodes: everything, with a message": both(
        every(10, "episode", r"Performing memory cleanup \(after episode (\d+)\): "), messages, everything
    ),
    "tensors detached and on the CPU": both(without_graph, detached),
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
