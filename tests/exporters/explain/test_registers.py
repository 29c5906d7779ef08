"""Which dictionaries have an end, since another container has one thing for each of their keys."""

from __future__ import annotations

from typing import Any

import pytest

from heapwatch.explain import inventory as subject
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.registers import bound_by_keys
from heapwatch.measure.introspection.roots import Root


class Agent:
    def __init__(self, number: int) -> None:
        self.name, self.age = f"robot {number}", number % 3


class Holder:
    agents: Any
    networks: dict[Any, Any]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Holder:
    for name in ("user_modules", "frame_roots", "registry_roots"):
        monkeypatch.setattr(subject, name, list)
    found = Holder()
    found.agents, found.networks = [Agent(number) for number in range(90)], {}
    return found


def bound(held: Holder, **later: Any) -> int | None:
    """The bound of the networks of a program, the last of which is added after two minutes.

    Args:
        held: the program.
        later: attributes that change before the bound is looked for.

    """
    now = [0.0]
    inventory = Inventory(
        clock=lambda: now[0], spent=lambda: 0.0, extra_roots=lambda: [Root("env", "env", lambda: held)]
    )
    while not inventory.discover(1000):
        pass
    last = dict([held.networks.popitem()])
    for now[0] in (1.0, 120.0):
        inventory.lengths.read(10)
        held.networks.update(last)
    vars(held).update(later)
    return bound_by_keys(inventory.known["env.networks"], inventory)


def test_a_dictionary_with_an_entry_for_each_agent_ends_with_their_number(held: Holder) -> None:
    held.networks = {f"robot {number}": [0.0] for number in range(40)}
    assert bound(held) == 90
    held.agents = {f"robot {number}": [] for number in range(70)}
    assert bound(held) == 70


@pytest.mark.parametrize("later", [{"agents": None}, {"networks": None}])
def test_what_is_no_container_any_more_has_no_keys(held: Holder, later: dict[str, None]) -> None:
    held.networks = {f"robot {number}": [0.0] for number in range(40)}
    assert bound(held, **later) is None


def test_what_grows_itself_is_no_bound(held: Holder) -> None:
    held.networks = {f"robot {number}": [0.0] for number in range(40)}
    held.agents = []
    assert bound(held) is None


def test_keys_that_nothing_else_has_are_no_bound(held: Holder) -> None:
    held.networks = {f"episode {number}": [0.0] for number in range(40)}
    assert bound(held) is None
    for number, agent in enumerate(held.agents):
        agent.age = number
    held.networks = {number: [0.0] for number in range(40)}
    assert bound(held) is None  # these are steps
    held.networks = {number: [0.0] for number in reversed(range(40))}
    assert bound(held) == 90


def test_numbers_that_do_not_tell_the_things_apart_are_no_bound(held: Holder) -> None:
    for number, agent in enumerate(held.agents):
        agent.name, agent.age = "robot", number % 60
    held.networks = {number: [0.0] for number in reversed(range(40))}
    assert bound(held) is None
