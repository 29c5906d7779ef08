"""The bytes that references to objects of Ray keep; Ray itself is played by a double."""

from __future__ import annotations

import sys
import threading
from collections import deque
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from heapwatch.measure.sizing.deep_size import deep_size

MB = 1_000_000


class ObjectRef:
    """A reference that knows its object's number, as those of Ray do."""

    def __init__(self, number: int) -> None:
        self.number = number

    def binary(self) -> bytes:
        return self.number.to_bytes(28, "little")

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectRef) and self.number == other.number


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ray with a table of what its references refer to."""
    module: Any = ModuleType("ray")
    module.table, module.asked, module.initialized = {}, [], True
    module.ObjectRef = ObjectRef
    module.is_initialized = lambda: module.initialized
    module.shutdown = lambda: None

    def locate(references: list[ObjectRef]) -> dict[ObjectRef, dict[str, Any]]:
        module.asked += references
        return {one: module.table[one.number] for one in references if one.number in module.table}

    module.experimental = SimpleNamespace(get_local_object_locations=locate)
    monkeypatch.setitem(sys.modules, "ray", module)
    return module


def entry(size: int | None, nodes: int = 1, *, spilled: bool = False) -> dict[str, Any]:
    """An entry of the table."""
    return {"object_size": size, "node_ids": ["node"] * nodes, "did_spill": spilled}


@pytest.mark.parametrize("container", [list, deque, set, lambda refs: {str(one.number): one for one in refs}])
def test_containers_have_the_bytes_that_their_references_keep(ray: Any, container: Any) -> None:
    ray.table = {number: entry(2 * MB) for number in range(400)}
    size = deep_size(container(map(ObjectRef, range(400))), budget_seconds=5)
    assert size.shared_bytes == pytest.approx(800 * MB, rel=0.01)
    assert size.bytes < MB
    assert not size.unread


def test_two_references_to_an_object_count_it_once(ray: Any) -> None:
    ray.table = {7: entry(3 * MB)}
    assert deep_size([ObjectRef(7), {"again": ObjectRef(7)}]).shared_bytes == 3 * MB


def test_a_small_object_is_in_a_process_and_a_spilled_one_still_kept(ray: Any) -> None:
    ray.table = {1: entry(50_000, nodes=0), 2: entry(2 * MB, nodes=0, spilled=True)}
    assert deep_size(ObjectRef(1)).bytes == pytest.approx(50_000, abs=1000)
    assert deep_size(ObjectRef(2)).shared_bytes == 2 * MB


@pytest.mark.parametrize("table", [{}, {1: entry(None, nodes=0)}])
def test_an_object_that_is_not_made_yet_or_not_in_the_table_has_no_size(ray: Any, table: Any) -> None:
    ray.table = table
    size = deep_size([ObjectRef(1)])
    assert (size.shared_bytes, size.unread) == (0, 1)


def test_ray_is_not_asked_once_it_is_shut_down(ray: Any) -> None:
    """Its library ends the process that asks a table which is gone."""
    ray.table, ray.initialized = {1: entry(MB)}, False
    assert deep_size([ObjectRef(1)]).unread == 1
    assert not ray.asked


def test_ray_is_not_asked_while_the_main_thread_shuts_it_down(ray: Any) -> None:
    ray.table = {1: entry(MB)}
    sizes = []

    def shutdown() -> None:
        explainer = threading.Thread(target=lambda: sizes.append(deep_size([ObjectRef(1)])))
        explainer.start()
        explainer.join()

    ray.shutdown = shutdown
    ray.shutdown()
    assert sizes[0].unread == 1
    assert not ray.asked


def test_a_reference_of_the_client_and_an_older_ray_are_not_asked(ray: Any) -> None:
    class ClientObjectRef(ObjectRef):
        def binary(self) -> bytes:
            raise AssertionError("it waits for a server")

    ray.table = {1: entry(MB)}
    assert deep_size([ClientObjectRef(1)]).unread == 1
    del ray.experimental.get_local_object_locations
    assert deep_size([ObjectRef(1)]).unread == 1
    assert not ray.asked


def test_a_table_that_fails_has_no_sizes(ray: Any) -> None:
    def locate(references: Any) -> Any:
        raise AttributeError("'Worker' object has no attribute 'core_worker'")

    ray.experimental.get_local_object_locations = locate
    assert deep_size([ObjectRef(1)]).unread == 1


def test_another_module_of_the_name_has_no_sizes(ray: Any) -> None:
    del ray.shutdown, ray.is_initialized
    assert deep_size([ObjectRef(1)]).unread == 1
