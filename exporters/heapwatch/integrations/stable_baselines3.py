"""Stable-Baselines3: `model.learn(…, callback=HeapwatchCallback())`."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from numpy import count_nonzero, ndarray
from stable_baselines3.common.callbacks import BaseCallback

from heapwatch.integrations.session import Options, accessor, new_session
from heapwatch.runtime.safe_point import SafePoint
from heapwatch.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Off-policy models train after every few steps: so many seconds at least lie between two measured pairs of
# phases, as each reads the memory three times.
_PHASE_SECONDS = 0.25


class HeapwatchCallback(BaseCallback):
    """Watches a model while it learns: its replay or rollout buffer, its policy, both phases, its episodes.

    Phases that follow each other faster than four times a second are measured in part.

    Args:
        watch: one that runs already; by default one is started with training and stopped with it.
        options: `name=`, `record=`, `port=` and the others of `heapwatch.integrations.session.Options`.

    """

    def __init__(self, watch: Watch | None = None, **options: Unpack[Options]) -> None:
        super().__init__()
        self._session = new_session("stable-baselines3", "stable-baselines3", watch, **options)
        self._safe_point: SafePoint | None = None
        self._counted_steps = 0
        self._none_ended = b""
        self._measuring = False
        self._measured_at = float("-inf")

    @property
    def watch(self) -> Watch | None:
        """What watches, from the start of training to its end."""
        return self._session.watch

    def _on_training_start(self) -> None:
        session, model = self._session, self.model
        session.begin()
        for name in ("replay_buffer", "rollout_buffer"):
            if getattr(model, name, None) is not None:
                session.buffer(name, accessor(model, name))
        session.size("policy.state_dict", model.policy.state_dict)
        optimizer = getattr(model.policy, "optimizer", None)
        if optimizer is not None:
            session.size("optimizer.state_dict", optimizer.state_dict)
        self._safe_point = session.watch.exporter.safe_point if session.watch is not None else None
        # Steps as SB3 counts them; those of an earlier call are no progress of this run.
        self._counted_steps = model.num_timesteps
        self._none_ended = bytes(model.n_envs)  # the booleans of environments that go on

    def _on_rollout_start(self) -> None:
        if self._measuring:
            self._session.phase(None)
        now = perf_counter()
        self._measuring = now - self._measured_at >= _PHASE_SECONDS
        if self._measuring:
            self._measured_at = now
            self._session.phase("rollout")

    def _on_step(self) -> bool:
        point = self._safe_point
        if point is not None:
            # What `Watch.progress` does, without its checks: these lines run at every step.
            point.steps += self.num_timesteps - self._counted_steps
            self._counted_steps = self.num_timesteps
            dones = self.locals.get("dones")
            # Most steps end no episode, and comparing bytes is faster than numpy's count.
            if dones is not None and (type(dones) is not ndarray or dones.tobytes() != self._none_ended):
                self._count_episodes(dones)
            if point.due:
                point.visit(stepping=True)
        return True

    def _count_episodes(self, dones: Any) -> None:
        is_flags = type(dones) is ndarray and dones.dtype.char == "?"
        ended = dones.tobytes().count(1) if is_flags else int(count_nonzero(dones))
        if ended:
            self._session.advance("episode", ended)

    def _on_rollout_end(self) -> None:
        if self._measuring:
            self._session.phase("train")

    def _on_training_end(self) -> None:
        self._safe_point = None
        self._measuring = False
        self._session.end()
