"""What containers hold where the memory is not Python's: tensors on a GPU, programs that JAX compiled."""

import collections
import itertools
import mmap

import jax
import numpy as np
import pytest
import torch

from heapwatch.explain import weigh as weighing
from heapwatch.explain.remedies import remedy_for
from heapwatch.explain.weigh import traits_of, weigh
from heapwatch.measure.sizing import tensor_storage, traversal
from heapwatch.measure.sizing.deep_size import Size
from heapwatch.measure.sizing.foreign import MemoryBlock
from tests.support.walking import inventory_of


def found(agent, path):
    """The inventory of an agent, and the container at a path from it."""
    inventory = inventory_of(agent, "agent")
    inventory.lengths.read(1.0)
    return inventory, inventory.known[f"agent.{path}"]


class Agent:
    def __init__(self, losses=()):
        self.losses = losses or []


def holding(losses):
    """The inventory of an agent with these losses, and their container."""
    return found(Agent(losses), "losses")


def on_a_gpu(storage):
    return MemoryBlock(storage.data_ptr(), storage.nbytes(), "gpu")


def test_a_container_weighs_what_its_tensors_hold_on_a_gpu(monkeypatch):
    monkeypatch.setattr(tensor_storage, "storage_memory", on_a_gpu)
    inventory, losses = holding([torch.zeros(100_000) for _ in range(20)])
    weigh(losses, inventory, 0.0)

    assert losses.held.last == pytest.approx(20 * 400_000, rel=0.01)
    assert traits_of(losses, inventory).item_type == "Tensor"


def test_what_a_container_holds_in_shared_memory_is_known_as_it_grows():
    blocks = [mmap.mmap(-1, 1_000_000) for _ in range(20)]
    inventory, losses = holding([*blocks, bytearray(5_000_000)])
    assert losses.shared_bytes == 0
    weigh(losses, inventory, 0.0)
    assert losses.held.last == pytest.approx(25e6, rel=0.01)
    assert losses.shared_bytes == pytest.approx(20e6, rel=0.01)
    assert not weigh(losses, inventory, 0.0, budget_seconds=0.0)
    losses.items.add(1.0, 42)
    assert losses.shared_bytes == pytest.approx(40e6, rel=0.01)


def test_what_all_items_share_is_no_part_of_a_new_one():
    base = bytearray(5_000_000)
    kept = [[base, bytearray(100_000)] for _ in range(20)]
    inventory, losses = holding(kept)
    began = losses.items.read_at
    weigh(losses, inventory, began)
    assert losses.bytes_of_new == losses.bytes_each == pytest.approx(350_000, rel=0.02)
    kept += [[base, bytearray(100_000)] for _ in range(20)]
    losses.items.add(began + 60, 40)
    weigh(losses, inventory, began + 60)
    assert losses.bytes_of_new == pytest.approx(100_000, rel=0.1)


def test_references_that_can_no_longer_be_read_keep_the_bytes_that_they_had(monkeypatch):
    """A program ends, and Ray before it: the last reading must not be that nothing is kept."""
    inventory, losses = holding([mmap.mmap(-1, 1_000_000) for _ in range(20)])
    weigh(losses, inventory, 0.0)
    monkeypatch.setattr(weighing, "deep_size", lambda *_, **__: Size(bytes=200, unread=20))
    weigh(losses, inventory, 1.0)
    assert losses.held.last == pytest.approx(20e6, rel=0.01)
    assert losses.shared_bytes == pytest.approx(20e6, rel=0.01)


def test_a_bounded_buffer_of_graphs_has_the_remedy():
    weight = torch.ones(3, requires_grad=True)
    inventory, memory = holding(collections.deque(({"state": weight * at} for at in range(20)), maxlen=50))
    traits = traits_of(memory, inventory)
    assert traits.graph
    assert "`.detach()`" in remedy_for(memory, traits, 50, None)
    assert remedy_for(memory, traits._replace(graph=False), 50, None) is None


def test_programs_that_a_jitted_function_keeps_are_named_by_their_holder():
    agent = Agent()
    agent.step = jax.jit(lambda values: values + 1)
    for length in range(1, 6):
        agent.step(jax.numpy.zeros(length))
    inventory, step = found(agent, "step")

    assert step.items.last == 5
    traits = traits_of(step, inventory)
    assert (traits.item_type, traits.opaque) == ("compiled program", True)
    assert "pad to few shapes" in remedy_for(step, traits, None, None)
    weigh(step, inventory, 0.0)


class Part:
    def __init__(self, figure, theme):
        self.figure, self.theme, self.limits = figure, theme, [0.0, 1.0]


class Figure:
    """Its parts refer to it, as those of a plot do. One array is most of it; all figures share a theme."""

    def __init__(self, theme):
        self.parts = [Part(self, theme) for _ in range(1200)]
        self.image = np.zeros(500_000)


def test_items_of_thousands_of_objects_are_weighed_by_the_newest(monkeypatch):
    theme = [bytearray(3_000_000)]
    inventory, figures = holding({at: Figure(theme) for at in range(40)})
    spent = itertools.count()
    monkeypatch.setattr(traversal, "own_time", lambda: next(spent) / 1000)  # read every 128 objects
    for now in (100.0, 200.0, 300.0):
        if figures.held.last is None:
            weigh(figures, inventory, now)
    assert figures.held.last == pytest.approx(40 * 4_200_000, rel=0.05)
    assert spent.__reduce__()[1][0] < 200


def wrapped(env, depth):
    for _ in range(depth):
        holder = Agent()
        holder.env, holder.settings = env, [{"name": str(at), "limits": [at]} for at in range(20)]
        env = holder
    return env


def test_an_object_of_an_extension_is_found_behind_wrappers():
    for inside, opaque in ((np.random.default_rng(), True), ([1], False)):
        inventory, past = holding([wrapped(inside, 6) for _ in range(3)])
        assert traits_of(past, inventory).opaque is opaque


@pytest.mark.parametrize("name", ["simulator", "past_simulator"])
def test_what_an_item_only_refers_to_is_not_examined(name):
    agent = Agent()
    setattr(agent, name, np.random.default_rng())
    agent.past = [{"of": getattr(agent, name)} for _ in range(3)]
    inventory, past = found(agent, "past")
    assert not traits_of(past, inventory).opaque


def test_a_view_reports_how_much_of_the_array_it_uses():
    inventory, losses = holding([np.zeros(10_000)[:16] for _ in range(20)])
    assert traits_of(losses, inventory).view == (128, 80_000)


def test_a_view_beside_the_array_that_it_uses_keeps_no_more_alive():
    episodes = [np.zeros(10_000) for _ in range(20)]
    inventory, losses = holding([{"first": episode[:16], "all": episode} for episode in episodes])
    assert traits_of(losses, inventory).view is None


@pytest.mark.parametrize(
    ("make", "view"),
    [
        (lambda: torch.zeros(1, 500), lambda one: one.squeeze(0)),
        (lambda: np.zeros((1, 500)), lambda one: one[0]),
        (lambda: np.zeros((9, 500))[:5], lambda one: one[1:]),
    ],
)
def test_views_of_one_memory_are_the_same_items(make, view):
    agent = Agent([make() for _ in range(20)])
    agent.recent = collections.deque(map(view, agent.losses), maxlen=20)
    agent.others = [make() for _ in range(20)]
    inventory, losses = found(agent, "losses")
    recent, others = (traits_of(inventory.known[f"agent.{name}"], inventory) for name in ("recent", "others"))
    assert traits_of(losses, inventory).ids & recent.ids
    assert not traits_of(losses, inventory).ids & others.ids
