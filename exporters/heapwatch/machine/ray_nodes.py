"""The exporter of a machine on every node of a Ray cluster: one detached actor without a CPU for each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from heapwatch import data
from heapwatch.machine.node import DEFAULT_PORT, Node

NAMESPACE = "heapwatch"
_START_SECONDS, _STOP_SECONDS = 120.0, 15.0


class NodeActor:
    """Runs in a process of Ray on the node that it watches.

    It serves on the address by which the cluster knows this node, and cannot be asked for an action.
    """

    def __init__(self, name: str, host: str) -> None:
        self._node = Node(name)
        self._address = self._node.start(host, DEFAULT_PORT, join=False, port_search=True)

    def address(self) -> str:
        """Host and port."""
        return self._address

    def stop(self) -> None:
        """Leave the process that is visited, and stop serving."""
        self._node.stop()


class RayNodes:
    """Places and removes the actors.

    Args:
        ray: the module, imported by the caller.
        address: of the cluster; `auto` for the one of this machine.

    Raises:
        ConnectionError: there is no cluster at this address.

    """

    def __init__(self, ray: Any, address: str) -> None:
        self._ray = ray
        ray.init(
            address=address,
            namespace=NAMESPACE,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"py_modules": [str(folder) for folder in data.packages().values()]},
        )

    def place(self) -> list[str]:
        """Start the exporter on every live node that has none; returns the addresses of all that answer."""
        actors = [self._actor_on(node) for node in self._ray.nodes() if node["Alive"]]
        asked = [actor.address.remote() for actor in actors]
        ready, _ = self._ray.wait(asked, num_returns=len(asked), timeout=_START_SECONDS)
        addresses = []
        for reference in ready:
            with suppress(self._ray.exceptions.RayError):  # its node has just ended
                addresses.append(self._ray.get(reference))
        return sorted(addresses)

    def remove(self) -> int:
        """Stop all exporters; returns their number."""
        named = self._ray.util.list_named_actors(all_namespaces=True)
        names = [actor["name"] for actor in named if actor["namespace"] == NAMESPACE]
        for name in names:
            with suppress(ValueError, self._ray.exceptions.RayError):
                actor = self._ray.get_actor(name)
                self._ray.wait([actor.stop.remote()], timeout=_STOP_SECONDS)
                self._ray.kill(actor)
        return len(names)

    def _actor_on(self, node: dict[str, Any]) -> Any:
        name = f"node-{node['NodeID']}"
        with suppress(ValueError):
            return self._ray.get_actor(name)
        on_this_node = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node["NodeID"], soft=False
        )
        options = {"name": name, "lifetime": "detached", "num_cpus": 0, "max_restarts": -1}
        actor = self._ray.remote(NodeActor).options(**options, scheduling_strategy=on_this_node)
        return actor.remote(node["NodeManagerHostname"], node["NodeManagerAddress"])


def targets(addresses: Sequence[str]) -> list[dict[str, Any]]:
    """The content of a file for Prometheus's `file_sd_configs`."""
    return [{"targets": list(addresses)}]
