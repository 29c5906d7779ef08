"""Gymnasium: `env = HeapwatchWrapper(env)`, `envs = HeapwatchVectorWrapper(envs)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper

from heapwatch.integrations.session import Adapter, Options, Session, accessor
from heapwatch.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _has_world(env: Any) -> bool:
    try:
        return hasattr(env, "world")
    except Exception:  # a property that can be read later, when the environment has been reset
        return True


class HeapwatchWrapper(Adapter, gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Watches training from inside its environment: steps, episodes, and the bodies of a Box2D world.

    The world is read from `env.unwrapped.world` each time, since environments destroy it on reset. Wrapped
    environments of one process share one watch, which adds up their steps, episodes and bodies and ends when
    the last of them is closed; so `gymnasium.make_vec(…, wrappers=[HeapwatchWrapper])` works as well. In a
    worker process of an `AsyncVectorEnv` it would start a watch of the worker: use `HeapwatchVectorWrapper`
    in the trainer's process instead.

    Args:
        env: the environment.
        watch: a running watch; by default one is started here and stopped by `close()`.
        options: `name=` (by default the id of the first environment), `record=`, `port=` and the others of
            `heapwatch.integrations.session.Options`.

    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], watch: Watch | None = None, **options: Unpack[Options]
    ) -> None:
        # What `spec` says of this wrapper, which may be copied and printed: no watch, and no token.
        recorded: dict[str, Any] = {key: value for key, value in options.items() if key != "token"}
        RecordConstructorArgs.__init__(self, **recorded)
        gymnasium.Wrapper.__init__(self, env)
        name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
        self._session = Session(name, "gymnasium", watch, **options)
        self._session.begin()
        if _has_world(env.unwrapped):
            self._session.bodies(accessor(env.unwrapped, "world"))

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the environment; a safe point comes after it."""
        result = super().step(action)
        if result[2] or result[3]:
            self._session.advance("episode", 1)
        self._session.step()
        return result

    def close(self) -> None:
        """Stop watching, and close the environment."""
        self._session.end()
        super().close()  # type: ignore[no-untyped-call]


class HeapwatchVectorWrapper(Adapter, VectorWrapper):
    """Watches a vector environment: the steps and episodes of all its environments, and its workers' memory.

    The bodies of Box2D worlds are counted if the environments are in this process, as in `SyncVectorEnv`.

    Args:
        env: the vector environment, as `gymnasium.make_vec` returns it.
        watch: a running watch; by default one is started here and stopped by `close()`.
        options: `name=` (by default the id of the environments), `record=`, `port=` and the others of
            `heapwatch.integrations.session.Options`.

    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], watch: Watch | None = None, **options: Unpack[Options]
    ) -> None:
        unwrapped = env.unwrapped
        name = env.spec.id if env.spec is not None else type(unwrapped).__name__
        # First of all: an object that was made in part is closed too.
        self._session = Session(name, "gymnasium", watch, **options)
        VectorWrapper.__init__(self, env)
        self._session.begin()
        environments = [env.unwrapped for env in getattr(unwrapped, "envs", ())]
        if any(map(_has_world, environments)):
            readers = [accessor(env, "world") for env in environments]
            self._session.bodies(lambda: [read() for read in readers])

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all environments; a safe point comes after it."""
        result: tuple[Any, Any, Any, Any, dict[str, Any]] = super().step(actions)
        ended = int(np.count_nonzero(np.logical_or(result[2], result[3])))
        if ended:
            self._session.advance("episode", ended)
        self._session.advance("step", self.num_envs)
        return result

    def close(self, **kwargs: Any) -> None:
        """Stop watching, and close the environments."""
        self._session.end()
        super().close(**kwargs)
