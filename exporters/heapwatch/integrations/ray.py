"""Ray: a watch in every actor, by a hook of its worker processes.

    ray.init(runtime_env={"worker_process_setup_hook": "heapwatch.integrations.ray.watch_actors"})

Ray ends a worker whose hook fails. So imports that may fail are made in the thread, whose errors are logged.
"""

from __future__ import annotations

import logging
import threading
import time

from heapwatch.lifecycle import start
from heapwatch.measure.introspection.roots import OWN_THREADS
from heapwatch.runtime.failures import raised

log = logging.getLogger("heapwatch")

_PAUSE_SECONDS = 0.5


def watch_actors() -> None:
    """Called by Ray when a worker process starts: watch it once it is an actor.

    The class of the actor is the trainer's name, the id of the job the label `run`. Options come from the
    environment (HEAPWATCH_*). Errors here are logged and do not reach the actor.
    """
    threading.Thread(target=_watch, name=f"{OWN_THREADS}ray", daemon=True).start()


def _watch() -> None:
    try:
        import ray

        name = _actor_class()
        start(name, framework="ray", run=ray.get_runtime_context().get_job_id())
    except Exception as error:
        log.warning("this actor of Ray is not watched: %s", raised(error))


def _actor_class() -> str:
    """Wait until this process is an actor, for ever if it runs only tasks; return the name of its class."""
    from ray._private.worker import global_worker

    while not global_worker.actors:
        time.sleep(_PAUSE_SECONDS)
    return type(next(iter(global_worker.actors.values()))).__name__[:100]
