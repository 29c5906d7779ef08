"""A dictionary with a key for each agent has their number as its bound."""

from __future__ import annotations

from typing import Any

import pytest

from heapwatch.explain.bounds import bound_by_keys
from tests.support.walking import inventory_of


class Agent:
    def __init__(self, number: int) -> None:
        self.name, self.age = f"robot {number}", number % 3


class Holder:
    agents: Any
    networks: dict[Any, Any]


@pytest.fixture
def held() -> Holder:
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
    inventory = inventory_of(held, "env", clock=lambda: now[0])
    last = dict([held.networks.popitem()])
    for now[0] in (1.0, 120.0):
        inventory.lengths.read(10)
        held.networks.update(last)
    vars(held).update(later)
    return bound_by_keys(inventory.known["env.networks"], inventory)


def test_a_dictionary_with_an_entry_for_each_agent_ends_with_their_number(held):
    held.networks = {f"robot {number}": [0.0] for number in range(40)}
    assert bound(held) == 90
    held.agents = {f"robot {number}": [] for number in range(70)}
    assert bound(held) == 70


def test_keys_that_nothing_else_has_are_no_bound(held):
    held.networks = {f"episode {number}": [0.0] for number in range(40)}
    assert bound(held) is None
    for number, agent in enumerate(held.agents):
        agent.age = number
    held.networks = {number: [0.0] for number in range(40)}
    assert bound(held) is None  # these are steps
    held.networks = {number: [0.0] for number in reversed(range(40))}
    assert bound(held) == 90
