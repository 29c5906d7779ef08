"""Attributes are read completely, without code of the program, and without making the instance's dict."""

from __future__ import annotations

import functools
import gc
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from heapwatch.explain.inventory import Inventory
from heapwatch.measure.introspection.attributes import attribute_of, attributes_of
from heapwatch.measure.introspection.roots import Root

apart = pytest.mark.skipif(sys.version_info < (3, 11), reason="CPython keeps values apart from 3.11 on")


class Agent:
    limit = None

    def __init__(self, size: int) -> None:
        self.memory: list[int] = []
        self.size = size
        self.policy: dict[str, int] = {}
        self.other: Agent | None = None

    def collect(self) -> None:
        def later() -> None:
            self.collected = [1]

        later()


def has_dict(agent: Agent) -> bool:
    """Whether the instance's dict was made."""
    dicts = [part for part in gc.get_objects() if type(part) is dict and part.get("memory") is agent.memory]
    return any(part.keys() >= {"size", "policy", "other"} for part in dicts)


@apart
def test_reading_and_a_walk_make_no_dict() -> None:
    agent = Agent(3)
    for _ in range(3):
        assert attributes_of(agent) == {"memory": [], "size": 3, "policy": {}, "other": None}
        assert attribute_of(agent, "memory") is agent.memory
    agent.policy["memory"] = 1
    assert attributes_of(agent)["policy"] is agent.policy
    agent.collect()
    assert attributes_of(agent)["collected"] == [1]
    agent.other = Agent(4)
    agent.other.memory += range(1000)
    root = Root("agent", "agent", lambda: {"agent": agent}, namespace=True)
    inventory = Inventory(spent=lambda: 0.0, extra_roots=lambda: [root])
    for _ in range(2):
        while not inventory.discover(1.0):
            pass
        inventory.lengths.read(1.0)
    assert any(path.endswith("agent.other.memory") for path in inventory.known)
    assert not has_dict(agent)
    assert not has_dict(agent.other)


def test_a_property_that_a_class_gets_later_is_not_run() -> None:
    class Changed(Agent):
        pass

    agent = Changed(3)
    assert attributes_of(agent)["memory"] is agent.memory
    memory = agent.memory
    Changed.memory = property(lambda _: pytest.fail("looking runs code of the program"))  # type: ignore[assignment]
    assert attributes_of(agent)["memory"] is memory
    assert attribute_of(agent, "memory") is memory


def test_an_attribute_is_found_that_comes_later_or_that_no_code_of_the_class_assigns() -> None:
    agent = Agent(3)
    attributes_of(agent)
    agent.collect()
    setattr(agent, "from_" + "outside", [2])
    found = attributes_of(agent)
    assert (found["collected"], found["from_outside"]) == ([1], [2])
    assert found == vars(agent) == attributes_of(agent)  # which has a dict from now on


@pytest.mark.parametrize("made", [False, True], ids=["values apart", "dict made"])
def test_arguments_that_a_constructor_keeps_are_not_its_attributes(made: bool) -> None:
    """As each wrapper of Gymnasium does."""

    class Wrapper:
        def __init__(self, env: Agent, clean: bool = False) -> None:
            self.arguments = {"env": env, "clean": clean}
            self.env = env
            self.clean = clean
            self.frames = [1.0, 2.0]

    class InASlot(Wrapper):
        __slots__ = ("env",)

    for kind in (Wrapper, InASlot):
        wrapper = kind(Agent(3))
        if made:
            vars(wrapper)
        found = attributes_of(wrapper)
        assert found["frames"] is wrapper.frames
        assert found["arguments"] is wrapper.arguments


def test_an_attribute_of_the_class_is_none_of_the_instance() -> None:
    agent = Agent(3)
    assert "limit" not in attributes_of(agent)
    with pytest.raises(LookupError):
        attribute_of(agent, "limit")
    agent.limit = [5]  # type: ignore[assignment]
    assert attributes_of(agent)["limit"] == [5]
    assert attribute_of(agent, "limit") == [5]


def test_no_code_of_the_program_runs() -> None:
    called = []

    def trap(self: Any, *arguments: Any) -> Any:
        called.append(arguments)
        return [5]

    class Armed:
        size = property(trap, trap)
        table = functools.cached_property(trap)
        __getattribute__ = __getattr__ = trap

        def grow(self) -> None:
            self.items = [1]
            self.size = self.table = self.missing = 4

    armed = Armed()
    object.__setattr__(armed, "items", [1])
    assert attributes_of(armed) == {"items": [1]}
    for name in ("size", "table", "missing"):
        with pytest.raises(LookupError):
            attribute_of(armed, name)
    namespace = object.__getattribute__(armed, "__dict__")
    namespace["table"] = held = [3]
    assert attributes_of(armed)["table"] is held
    assert not called


def test_slots_are_no_attributes_and_fields_of_a_data_class_and_many_names_are() -> None:
    class Slotted:
        __slots__ = ("__dict__", "kept")

        def __init__(self) -> None:
            self.kept = [1]
            self.items = [2]

    @dataclass
    class Settings:
        path: list[str] = field(default_factory=list)

    assert attributes_of(Slotted()) == {"items": [2]}
    assert attributes_of(Settings()) == {"path": []}
    body = "\n".join(f"        self.attribute_{at} = [{at}]" for at in range(400))
    names: dict[str, Any] = {}
    exec(f"class Many:\n    def fill(self):\n{body}\n", names)
    many = names["Many"]()
    many.attribute_399 = [399]
    many.attribute_3 = [3]
    assert attributes_of(many) == {"attribute_399": [399], "attribute_3": [3]}
