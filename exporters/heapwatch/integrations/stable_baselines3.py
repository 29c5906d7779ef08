"""Stable-Baselines3: `model.learn(…, callback=HeapwatchCallback())`."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from numpy import count_nonzero, ndarray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from heapwatch.integrations.session import Adapter, Options, accessor
from heapwatch.runtime.safe_point import SafePoint
from heapwatch.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Off-policy models train after every few steps: so many seconds at least lie between two measured pairs of
# phases, as each reads the memory three times.
_MEASURED_SECONDS = 1.0


class HeapwatchCallback(Adapter, BaseCallback):
    """Watches a model while it learns: its replay or rollout buffer, its policy, its phases and episodes.

    Of phases that are shorter than a second, one is measured each second.
    Its arguments are those of `heapwatch.integrations.session.Adapter`.
    """

    _framework = "stable-baselines3"

    def __init__(self, watch: Watch | None = None, **options: Unpack[Options]) -> None:
        super().__init__(watch, **options)
        self._safe_point: SafePoint | None = None
        self._counted_steps = self._counted_episodes = 0
        self._model_counts_episodes = False
        self._none_ended = b""
        self._measuring = self._measures_next = False
        self._measured_at = float("-inf")

    def _on_training_start(self) -> None:
        session, model = self._session, self.model
        session.begin()
        for name in ("replay_buffer", "rollout_buffer"):
            if getattr(model, name, None) is not None:
                session.buffer(name, accessor(model, name))
        session.state_of("policy", model.policy)
        session.state_of("optimizer", getattr(model.policy, "optimizer", None))
        if session.watch is not None:
            self._safe_point = session.watch.exporter.safe_point
            self._safe_point.due_each_tick = self._measures_next = True
        # What the model counted before is no progress of this run.
        episodes = getattr(model, "_episode_num", None)  # a private name, which another version may lack
        self._counted_steps, self._counted_episodes = model.num_timesteps, episodes or 0
        self._model_counts_episodes = isinstance(model, OffPolicyAlgorithm) and episodes is not None
        self._none_ended = bytes(model.n_envs)  # the booleans of environments that go on

    def _on_rollout_start(self) -> None:
        if self._measuring:
            self._session.phase(None)
        self._measuring, self._measures_next = self._measures_next, False
        if self._measuring:
            self._measured_at = perf_counter()
            self._session.phase("rollout")

    def _on_step(self) -> bool:
        # These lines run at every step. What is counted waits for a visit, at most a second.
        point = self._safe_point
        if point is not None:
            if not self._model_counts_episodes:
                self._count_ended(self.locals.get("dones"))
            if point.due:
                self._count()
                self._measures_next |= perf_counter() - self._measured_at >= _MEASURED_SECONDS
                point.visit(stepping=True)
        return True

    def _on_rollout_end(self) -> None:
        if self._measuring:
            self._session.phase("train")

    def _count(self) -> None:
        """Advance by the steps since the last call, and by the episodes that the model has counted."""
        if self._safe_point is not None:
            self._safe_point.steps += self.num_timesteps - self._counted_steps
            self._counted_steps = self.num_timesteps
        if self._model_counts_episodes:
            counted = self.model._episode_num
            if counted > self._counted_episodes:
                self._session.advance("episode", counted - self._counted_episodes)
            self._counted_episodes = counted

    def _count_ended(self, dones: Any) -> None:
        # Most steps end no episode, and comparing bytes is faster than numpy's count.
        if dones is None or (type(dones) is ndarray and dones.tobytes() == self._none_ended):
            return
        if ended := int(count_nonzero(dones)):
            self._session.advance("episode", ended)

    def _on_training_end(self) -> None:
        self._count()
        if self._safe_point is not None:
            self._safe_point.due_each_tick = False
        self._safe_point = None
        self._measuring = False
        self._session.end()
