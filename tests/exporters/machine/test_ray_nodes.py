"""Placing the exporter on the nodes of a Ray cluster, with a double of Ray."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from heapwatch.machine.ray_nodes import NAMESPACE, NodeActor, RayNodes, targets


class RayError(Exception):
    """What Ray raises for an actor that died."""


class Cluster:
    """Behaves like the module `ray` with a cluster of two live nodes and one that ended."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self) -> None:
        self.actors: dict[str, Any] = {}
        self.killed: list[str] = []
        self.dead: set[str] = set()
        self.util = SimpleNamespace(
            list_named_actors=lambda all_namespaces: [
                *({"name": name, "namespace": NAMESPACE} for name in self.actors),
                {"name": "mine", "namespace": "job"},
            ],
            scheduling_strategies=SimpleNamespace(
                NodeAffinitySchedulingStrategy=lambda node, soft: (node, soft)
            ),
        )

    def init(self, **options: Any) -> None:
        self.options = options

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": name, "Alive": name != "c", "NodeManagerHostname": f"host-{name}",
             "NodeManagerAddress": f"10.0.0.{at}"}
            for at, name in enumerate("abc")
        ]  # fmt: skip

    def get_actor(self, name: str) -> Any:
        if name not in self.actors:
            raise ValueError(name)
        return self.actors[name]

    def remote(self, kind: type) -> Any:
        assert kind is NodeActor

        def begin(options: dict[str, Any], name: str, host: str) -> Any:
            assert options["num_cpus"] == 0
            assert options["lifetime"] == "detached"
            node, soft = options["scheduling_strategy"]
            assert (options["name"], name, soft) == (f"node-{node}", f"host-{node}", False)
            actor = SimpleNamespace(
                name=options["name"],
                address=SimpleNamespace(remote=lambda: (options["name"], f"{host}:7790")),
                stop=SimpleNamespace(remote=lambda: ("stop", "")),
            )
            self.actors[options["name"]] = actor
            return actor

        return SimpleNamespace(
            options=lambda **options: SimpleNamespace(remote=lambda *given: begin(options, *given))
        )

    def wait(
        self, references: list[Any], num_returns: int = 1, timeout: float = 0.0
    ) -> tuple[list[Any], Any]:
        return references, []

    def get(self, reference: tuple[str, str]) -> str:
        if reference[0] in self.dead:
            raise RayError
        return reference[1]

    def kill(self, actor: Any) -> None:
        self.killed.append(actor.name)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_each_live_node_gets_one_exporter_and_keeps_it(cluster: Cluster) -> None:
    nodes = RayNodes(cluster, "auto")
    assert nodes.place() == ["10.0.0.0:7790", "10.0.0.1:7790"]
    first = dict(cluster.actors)
    assert nodes.place() == ["10.0.0.0:7790", "10.0.0.1:7790"]
    assert cluster.actors == first
    modules = cluster.options["runtime_env"]["py_modules"]
    assert {module.rpartition("/")[2] for module in modules} == {"heapwatch", "prometheus_client", "psutil"}


def test_a_node_that_ends_meanwhile_is_left_out(cluster: Cluster) -> None:
    nodes = RayNodes(cluster, "auto")
    cluster.dead.add("node-a")
    assert nodes.place() == ["10.0.0.1:7790"]


def test_only_its_own_actors_are_removed(cluster: Cluster) -> None:
    nodes = RayNodes(cluster, "auto")
    nodes.place()
    assert nodes.remove() == 2
    assert cluster.killed == ["node-a", "node-b"]


def test_the_targets_are_what_prometheus_reads() -> None:
    assert targets(["10.0.0.1:7790"]) == [{"targets": ["10.0.0.1:7790"]}]
