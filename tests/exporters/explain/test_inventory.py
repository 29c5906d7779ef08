"""In what order the inventory reads what it found, and which graphs it says pile up."""

from __future__ import annotations

import asyncio
import io
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch

from heapwatch.explain import inventory as subject
from heapwatch.explain.describe import Describer
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.weigh import weigh
from heapwatch.judge.level import is_steady
from heapwatch.measure.introspection.attributes import Gone
from heapwatch.measure.introspection.roots import Root
from tests.support.walking import inventory_from, inventory_of, walk


class Holder:
    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)


def test_a_ring_buffer_is_read_by_its_position():
    observations = np.zeros((1000, 500))
    held = Holder(replay=Holder(capacity=1000, pos=250, full=False, observations=observations))
    inventory = inventory_of(held)
    inventory.lengths.read(1000)
    (known,) = (one for one in inventory.known.values() if one.kind == "ring")
    assert (known.path, known.items.last, known.capacity) == ("it.replay", 250, 1000)
    assert known.held.last == 250 * 500 * 8


def test_a_path_begins_at_the_users_object_where_a_librarys_names_lead_to_it():
    library = {"worker": {"actors": {1: Holder(kept=["a"] * 9), 2: Holder(kept=["b"] * 9)}}}

    def paths(is_users: bool) -> list[str]:
        root = Root("", "module __main__", lambda: library, namespace=True, is_users=is_users)
        return sorted(path for path in inventory_from(root).known if path.endswith(".kept"))

    assert paths(is_users=False) == ["Holder.kept"]
    assert paths(is_users=True) == ['worker["actors"][*].kept']


def test_a_class_that_was_sent_from_a_script_that_is_not_here_is_the_users():
    sent = type("Rollout", (), {"__module__": "train", "sample": lambda self: None})
    actor = sent()
    actor.kept = ["a"] * 9  # type: ignore[attr-defined]
    library = {"worker": {"actors": {1: actor}}}
    root = Root("", "module __main__", lambda: library, namespace=True, is_users=False)
    assert "Rollout.kept" in inventory_from(root).known


def test_the_program_may_resize_an_array_while_containers_are_read():
    """`ndarray.resize` fails if anybody else refers to the array."""
    held = Holder(**{f"array{at}": np.zeros(100_000) for at in range(64)})
    resized = []

    def spent() -> float:
        for name in vars(held):
            getattr(held, name).resize(100_001 + len(resized))
        resized.append(len(vars(held)))
        return 0.0

    inventory = inventory_of(held, spent=spent)
    resized.clear()
    assert inventory.lengths.read(1000) >= 64
    assert len(resized) > 3


def piled(step: Callable[[Any], Any], seconds: int = 60) -> float:
    """Seconds for which the graph of what `step` makes anew once a second piled up."""
    now = [0.0]
    held = {"loss": step(torch.zeros(1, requires_grad=True))}
    inventory = inventory_of(held, clock=lambda: now[0])
    (graph,) = (known for known in inventory.known.values() if known.kind == "graph")
    highest = 0.0
    for _ in range(seconds):
        held["loss"] = step(held["loss"])
        now[0] += 1.0
        inventory.lengths.read(10)
        assert graph.items.last is not None
        highest = max(highest, graph.items.last)
    return highest


def test_a_loss_that_sums_up_over_steps_piles_up():
    weight = torch.ones(1, requires_grad=True)

    def step(total: torch.Tensor) -> torch.Tensor:
        for at in range(100):
            total = total + (weight * at).exp().tanh().sum()
        return total

    assert piled(step) >= 40.0


def test_the_states_of_a_rollout_do_not_accumulate_though_each_holds_those_before():
    weight = torch.ones(1, requires_grad=True)

    def rollout(_: Any) -> list[torch.Tensor]:
        states = [weight.exp()]
        for _ in range(9):
            states.append((states[-1] * weight).tanh())
        return states

    assert piled(rollout) == 0.0


class Replay:
    def __init__(self, capacity: int) -> None:
        self.episodes = np.empty(capacity, dtype=object)
        self.at = 0

    def add(self, episode: object) -> None:
        self.episodes[self.at] = episode
        self.at += 1


def test_an_array_of_objects_is_a_container_that_fills_up_to_its_length():
    now, replay = [0.0], Replay(1000)
    replay.add(np.zeros(1000))
    inventory = inventory_of(replay, clock=lambda: now[0])
    for _ in range(40):
        now[0] += 5.0
        replay.add(np.zeros(1000))
        inventory.lengths.read(10)
    known = inventory.known["it.episodes"]
    growth = known.items.growth()
    assert growth.rising
    assert growth.per_second == pytest.approx(0.2, rel=0.05)
    assert known.capacity == 1000
    weigh(known, inventory, now[0])
    assert known.held.last == pytest.approx(41 * 8000, rel=0.1)
    candidate = Describer(inventory).describe(known, growth)
    assert candidate.bounded
    assert candidate.traits.item_type == "ndarray"
    assert candidate.site is not None
    assert candidate.site.function == "Replay.add"


@pytest.mark.parametrize(("stream", "part"), [(io.StringIO, "a line\n"), (io.BytesIO, b"a line\n")])
def test_a_stream_in_memory_is_followed_by_its_bytes(stream, part):
    held = Holder(tee=Holder(captured=stream()))
    held.tee.captured.write(part * 300_000)
    inventory = inventory_of(held)
    known = inventory.known["it.tee.captured"]
    for times in (300_000, 100_000):
        held.tee.captured.write(part * times)
        known.due = 0.0
        inventory.lengths.read(1000)
    assert known.items.last == pytest.approx(700_000 * 7, rel=0.3)
    held.tee.captured.close()
    known.due = 0.0
    inventory.lengths.read(1000)  # it cannot be asked any more


def test_an_array_is_followed_by_its_bytes_and_a_list_through_its_own_method():
    held = Holder(weights=np.zeros(100_000), replay=[].append)
    for _ in range(3):
        held.replay(b"episode")
    inventory = inventory_of(held)
    inventory.lengths.read(1000)
    assert inventory.known["it.weights"].items.last == 800_000
    assert inventory.known["it.replay.__self__"].items.last == 3


def local(name: str, **variables: Any) -> Root:
    """The variables of a function that is running."""
    return Root(f"{name}()", "frame 1 2", lambda: variables, namespace=True, frame_code=2)


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.losses = [0.0]


def test_what_libraries_keep_of_many_modules_is_not_listed_until_it_grows():
    class Robot:
        def __init__(self) -> None:
            self.network = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(10)))
            self.optimizer = torch.optim.Adam(self.network.parameters())
            self.buffer = [0]

    robots = [Robot() for _ in range(30)]
    robots[0].network.append(Counting())
    inventory = inventory_of(robots, "robots")
    assert set(inventory.known) == {"robots", "robots[*].buffer", "robots[*].network[*].losses"}
    assert inventory.visited < 300

    robots[0].network[0].register_forward_hook(print)
    walk(inventory)
    assert [path for path in inventory.known if path.endswith("._forward_hooks")]


async def collect(learner: Holder) -> None:
    pending = [1, 2, 3]
    while pending:
        await asyncio.sleep(0)


def test_what_a_coroutine_holds_has_the_names_of_its_variables_and_is_let_go():
    learner = Holder(history=[0] * 30)
    waiting = collect(learner)
    waiting.send(None)
    kept = weakref.ref(learner)
    inventory = inventory_of(Holder(task=waiting))
    paths = {path for path in inventory.known if path.startswith("collect()")}
    assert paths == {"collect().pending", "collect().learner.history"}
    learner.history.append(0)
    inventory.known["collect().learner.history"].due = 0.0
    inventory.lengths.read(1000)
    assert inventory.known["collect().learner.history"].items.last == 31
    waiting.close()
    del learner
    assert kept() is None


def test_what_a_coroutine_holds_that_another_one_awaits_has_a_path():
    """The awaited coroutine is no variable of the other, and nothing else refers to it."""

    async def run() -> None:
        await collect(Holder(history=[0] * 30))

    waiting = run()
    waiting.send(None)
    paths = set(inventory_of(Holder(task=waiting)).known)
    waiting.close()
    assert paths == {"collect().pending", "collect().learner.history"}


@pytest.mark.parametrize("of_global", [True, False])
def test_of_several_ways_to_a_container_the_one_that_lasts_longest_is_its_name(monkeypatch, of_global):
    collector, trainer = Holder(), Holder()
    trainer.collector, collector.replay = collector, [1, 2]
    inner = [local("collect", self=collector), local("step", experiences=collector.replay)]
    outer = Root("", "module train", lambda: {"trainer": trainer}, namespace=True)
    frames = inner if of_global else [local("main", trainer=trainer), *inner]
    monkeypatch.setattr(subject, "frame_roots", lambda: frames)
    inventory = inventory_from(*([outer] if of_global else []))
    expected = "trainer.collector.replay" if of_global else "main().trainer.collector.replay"
    assert [path for path in inventory.known if "trainer" in path or "exp" in path] == [expected]


def test_a_container_that_gets_a_better_name_keeps_its_readings(monkeypatch):
    replay: list[int] = []
    trainer = Holder()
    roots: list[Root] = []
    now = [0.0]
    monkeypatch.setattr(subject, "frame_roots", lambda: [local("train", experiences=replay)])
    inventory = Inventory(clock=lambda: now[0], spent=lambda: 0.0, extra_roots=lambda: roots)
    walk(inventory)
    for now[0] in range(1, 60):
        replay.append(1)
        inventory.lengths.read(10)
    trainer.replay = replay
    roots.append(Root("trainer", "it", lambda: trainer))
    walk(inventory)
    (known,) = inventory.known.values()
    assert known.path == "trainer.replay"
    assert known.items.growth().rising


def test_a_local_variable_of_a_call_that_has_ended_is_no_container(monkeypatch):
    running = [True]

    def variables() -> dict[str, Any]:
        if not running:
            raise Gone("forward")
        return {"identity": np.zeros(100_000)}

    root = Root("forward()", "frame 1 2", variables, namespace=True, frame_code=2)
    monkeypatch.setattr(subject, "frame_roots", lambda: [root])
    inventory = inventory_from()
    assert list(inventory.known) == ["forward().identity"]
    inventory.lengths.read(10)
    running.clear()
    for known in inventory.known.values():
        known.due = 0.0
    inventory.lengths.read(10)
    assert not inventory.known


def test_a_walk_that_was_too_long_continues_where_it_stopped(monkeypatch):
    monkeypatch.setattr(subject, "_MOST_VISITED", 100)
    holder = Holder()
    for at in range(20):
        vars(holder)[f"branch{at}"] = branch = Holder()
        for leaf in range(20):
            vars(branch)[f"leaf{leaf}"] = [leaf]
    inventory = inventory_of(holder)
    found: set[int] = set()
    for _ in range(8):
        found |= {known.identity for known in inventory.known.values()}
        walk(inventory)
    assert len(found) == 400


def wrapped(env: Holder, wrappers: int) -> Holder:
    """An environment behind wrappers of a library, each with settings of its own."""
    for _ in range(wrappers):
        settings = Holder(spec=[1], bounds=Holder(low=[0], high=[1]))
        env = Holder(env=env, settings=settings)
    return env


def algorithm() -> Holder:
    """A trainer of a library with statistics for everything, and a list deep inside each environment."""

    def statistics() -> dict[str, Holder]:
        return {
            f"metric {at}": Holder(
                values=[0.0], start=Holder(times={}), window=Holder(latest=[0.0], size=[9])
            )
            for at in range(24)
        }

    envs = [wrapped(Holder(episodes=[[1]] * (1 + at)), 4) for at in range(8)]
    runner = Holder(metrics=statistics(), episodes=statistics(), env=wrapped(Holder(envs=envs), 2))
    learner = Holder(metrics=statistics(), pipeline=[wrapped(Holder(), 3) for _ in range(8)])
    return Holder(metrics=statistics(), learner=Holder(learner=learner), group=Holder(runner=runner))


def slowly_walked(held: Holder | None = None, **options: Any) -> tuple[Holder, Inventory]:
    """A program and its inventory before the first walk, in whose slices little is visited."""
    spent, held = count(), held or algorithm()
    return held, inventory_of(held, walks=0, spent=lambda: next(spent), **options)


DEEP = "it.group.runner.env.env.env.envs[*].env.env.env.env.episodes"


def test_many_alike_objects_do_not_keep_what_lies_deeper_from_being_found():
    _, inventory = slowly_walked()
    slices = 0
    while DEEP not in inventory.known:
        assert not inventory.discover(0)
        slices += 1
    assert slices < 300 / 8
    walk(inventory)
    assert inventory.visited > 900
    assert inventory.known[DEEP].multiplicity == 8


def test_what_was_read_of_the_first_of_many_containers_counts_for_all():
    """As if all of them had been read from the start: their mean has another level, and the same rate."""
    now = [0.0]
    held, inventory = slowly_walked(clock=lambda: now[0])
    while DEEP not in inventory.known:
        inventory.discover(0)
    known = inventory.known[DEEP]
    histories = [env.env.env.env.env.episodes for env in held.group.runner.env.env.env.envs]
    for now[0] in range(400):
        for length, history in enumerate(histories):
            history += [[1]] * (1 + length)
        if now[0] == 200:
            weigh(known, inventory, now[0])
            measured = known.held.last
            walk(inventory)
            assert known.held.last == 8 * (measured or 0.0) > 0
            assert known.places_read == 1
        inventory.lengths.read(1e9)
    assert known.places_read == 8
    assert known.items.growth().per_second == pytest.approx(4.5, rel=0.02)
    assert is_steady(known.items, [], 0.0)


def test_an_endless_program_does_not_keep_one_root_from_its_turn(monkeypatch):
    monkeypatch.setattr(subject, "_MOST_OF_ROOT", 50)
    monkeypatch.setattr(subject, "_MOST_VISITED", 200)
    large = {f"part{at}": {f"list{number}": [number] for number in range(20)} for at in range(20)}
    monkeypatch.setattr(subject, "frame_roots", lambda: [local("main", history=[1])])
    inventory = inventory_of(large)
    assert "main().history" in inventory.known
