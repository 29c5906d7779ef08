"""Jobs of many processes: `job.py KIND [ADDRESS]`; with JOB=steady none of them leaks.

Each process writes a byte into the file STEPS at each step, if that is set.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from multiprocessing import get_context, shared_memory
from typing import Any

STEADY = os.environ.get("JOB") == "steady"
PAUSE = 0.25
CHUNK = 100_000  # bytes; four a second are 24 MB a minute


class Steps:
    """Counts steps in a file."""

    def __init__(self) -> None:
        path = os.environ.get("STEPS")
        self._file = open(path, "ab", buffering=0) if path else None  # noqa: SIM115

    def done(self) -> None:
        if self._file is not None:
            self._file.write(b".")


class Rollout:
    """Keeps every trajectory, or the last hundred."""

    def __init__(self) -> None:
        self.trajectories: Any = deque(maxlen=100) if STEADY else []
        self.steps = Steps()

    def sample(self) -> int:
        self.trajectories.append(bytearray(CHUNK))
        self.steps.done()
        return len(self.trajectories)


class Other:
    """Works and keeps nothing."""

    def sample(self) -> int:
        return sum(range(1000))


def ray_actors(address: str) -> None:
    """Three rollouts among actors of three other classes, in a cluster that was started before."""
    import ray

    own = {name: os.environ[name] for name in ("JOB", "STEPS") if name in os.environ}
    ray.init(address=address, log_to_driver=False, runtime_env={"env_vars": own})
    classes = [Rollout] * 3 + [type(name, (Other,), {}) for name in ("Reward", "Learner", "Evaluator")]
    actors = [ray.remote(one).options(num_cpus=0).remote() for one in classes]
    while True:
        ray.get([actor.sample.remote() for actor in actors])
        time.sleep(PAUSE)


def kept_references() -> None:
    """A driver that keeps the references of all results, or the last twenty."""
    import ray

    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=2 * 10**9, log_to_driver=False)

    @ray.remote
    def result() -> bytes:
        return bytes(10 * CHUNK)

    history: Any = deque(maxlen=20) if STEADY else []
    steps = Steps()
    while True:
        history.append(result.remote())
        ray.wait([history[-1]])
        steps.done()
        time.sleep(2 * PAUSE)


def work() -> None:
    """One process of a group."""
    rollout = Rollout()
    while True:
        rollout.sample()
        time.sleep(PAUSE)


def torchrun() -> None:
    """Two ranks."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=0"]
    subprocess.run([*command, __file__, "rank"], check=True)


def scheduler(rank: int) -> None:
    """A worker of an inference server: its segments of shared memory stay behind, unless it is steady."""
    segments: Any = deque(maxlen=2)
    steps = Steps()
    while True:
        segment = shared_memory.SharedMemory(create=True, size=CHUNK)
        segment.buf[:] = bytes(CHUNK)
        segment.close()
        if STEADY:
            segment.unlink()
        segments.append(segment.name)
        steps.done()
        time.sleep(PAUSE)


def spawned() -> None:
    """Two workers of such a server."""
    context = get_context("spawn")
    workers = [context.Process(target=scheduler, args=(rank,)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def many() -> None:
    """150 healthy processes; one more, of a name of its own, leaks."""
    steady = {**os.environ, "JOB": "steady"}
    command = [sys.executable, __file__, "rank"]
    children = [subprocess.Popen(command, env=steady) for _ in range(150)]
    if not STEADY:
        children.append(subprocess.Popen([sys.executable, __file__.replace("job.py", "leaking_job.py")]))
    for child in children:
        child.wait()


def cluster() -> None:
    """A Ray cluster of two nodes on this machine; prints its address."""
    from ray.cluster_utils import Cluster

    store = {"object_store_memory": 10**8, "num_cpus": 4}
    nodes = Cluster(initialize_head=True, head_node_args={**store, "include_dashboard": False})
    nodes.add_node(**store)
    print(nodes.address, flush=True)
    while True:
        time.sleep(60)


KINDS = {
    "ray": ray_actors,
    "references": kept_references,
    "torchrun": torchrun,
    "rank": work,
    "spawned": spawned,
    "many": many,
    "cluster": cluster,
}

if __name__ == "__main__":
    KINDS[sys.argv[1]](*sys.argv[2:])
