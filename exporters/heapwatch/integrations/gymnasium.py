"""Gymnasium: `env = HeapwatchWrapper(env)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsFloat

import gymnasium

from heapwatch.integrations.session import Options, accessor, new_session
from heapwatch.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Unpack


class HeapwatchWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Watches training from inside its environment: steps, episodes, and the bodies of a Box2D world.

    The world is found in `env.unwrapped.world`, anew each time: environments destroy it on reset.

    Args:
        env: the environment.
        watch: one that runs already; by default one is started here and stopped by `close()`.
        options: for `heapwatch.start`.

    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], watch: Watch | None = None, **options: Unpack[Options]
    ) -> None:
        super().__init__(env)
        name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
        self._session = new_session(name, "gymnasium", watch, **options)
        self._session.begin()
        self._session.find_buffers(env.unwrapped)
        self._episodes = 0
        if hasattr(env.unwrapped, "world"):
            self._session.bodies(accessor(env.unwrapped, "world"))

    @property
    def watch(self) -> Watch | None:
        """What watches, until the environment is closed."""
        return self._session.watch

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the environment; a safe point comes after it."""
        result = super().step(action)
        if result[2] or result[3]:
            self._episodes += 1
            self._session.count("episode", self._episodes)
        self._session.step()
        return result

    def close(self) -> None:
        """Stop watching, and close the environment."""
        self._session.end()
        super().close()  # type: ignore[no-untyped-call]
