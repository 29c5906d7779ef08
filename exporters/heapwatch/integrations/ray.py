"""Ray: a watch in every actor, by a hook of its worker processes.

    ray.init(runtime_env={"worker_process_setup_hook": "heapwatch.integrations.ray.watch_actors"})

Ray ends a worker whose hook fails. So imports that may fail are made in the thread, whose errors are logged.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from heapwatch.lifecycle import start
from heapwatch.measure.introspection.roots import OWN_THREADS
from heapwatch.runtime.failures import raised
from heapwatch.runtime.own_files import open_own
from heapwatch.watch import Watch

log = logging.getLogger("heapwatch")

OBJECT_STORE = "ray object store"
SHARED_MEMORY = "/dev/shm"
_WARNING, _CRITICAL = 0.8, 0.95  # of the capacity: Ray spills to disk at 0.8
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 2.0

_turn: int | None = None  # descriptor of the lock, held as long as this process measures the machine


def watch_actors() -> None:
    """Called by Ray when a worker process starts: watch it once it is an actor.

    The class of the actor is the trainer's name, the id of the job the label `run`. One actor of each machine
    also measures Ray's object store and /dev/shm, as object sizes with limits. Options come from the
    environment (HEAPWATCH_*). Errors here are logged and do not reach the actor.
    """
    threading.Thread(target=_watch, name=f"{OWN_THREADS}ray", daemon=True).start()


def _watch() -> None:
    global _turn
    try:
        import ray

        name = _actor_class()
        context = ray.get_runtime_context()
        watch = start(name, framework="ray", run=context.get_job_id())
        _turn = _wait_for_turn()
        measure_machine(watch, context.get_node_id())
    except Exception as error:
        log.warning("this actor of Ray is not fully watched: %s", raised(error))


def _actor_class() -> str:
    """Wait until this process is an actor, for ever if it runs only tasks; return the name of its class."""
    from ray._private.worker import global_worker

    pause = _FIRST_PAUSE_SECONDS
    while not global_worker.actors:
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE_SECONDS, 1.2 * pause)
    return type(next(iter(global_worker.actors.values()))).__name__[:100]


def _wait_for_turn() -> int:
    """Wait until no other actor of this machine holds the lock, and take it until this process ends."""
    import fcntl

    from ray._private.worker import global_worker

    node: Any = global_worker.node
    lock = open_own(Path(node.get_session_dir_path(), "heapwatch.lock"), os.O_RDWR | os.O_CREAT)
    fcntl.lockf(lock, fcntl.LOCK_EX)  # of the process, so a forked child does not keep it
    return lock


def measure_machine(watch: Watch, node: str) -> None:
    """Measure the memory of this machine that belongs to no single process.

    Args:
        watch: exports it as object sizes, with limits at 80 % and 95 % of the capacity.
        node: the id of this machine's Ray node.

    """
    places = {
        OBJECT_STORE: (partial(object_store_used, node), _object_store(node, "total")),
        SHARED_MEMORY: (shared_memory_used, _shared_memory_capacity()),
    }
    for name, (used, capacity) in places.items():
        if capacity:
            watch.size(name, nbytes=used)
            watch.limit("object_size", name, warning=_WARNING * capacity, critical=_CRITICAL * capacity)


def object_store_used(node: str) -> float:
    """Bytes in use in the object store of this node.

    Raises:
        LookupError: Ray does not know the node any more.

    """
    return max(0.0, _object_store(node, "total") - _object_store(node, "available"))


def _object_store(node: str, which: str) -> float:
    from ray._private import state

    per_node: Any = getattr(state, f"{which}_resources_per_node")
    return float(per_node()[node].get("object_store_memory", 0))


def shared_memory_used() -> int:
    """Bytes in use in /dev/shm by all processes, including the touched pages of the object store."""
    found = os.statvfs(SHARED_MEMORY)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _shared_memory_capacity() -> int:
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:
        return 0
    return found.f_blocks * found.f_frsize
