"""Stable-Baselines3: `model.learn(…, callback=HeapwatchCallback())`."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from numpy import count_nonzero
from stable_baselines3.common.callbacks import BaseCallback

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
        self._counted_steps = 0
        self._measuring = False
        self._measured_at = float("-inf")

    def _on_training_start(self) -> None:
        session, model = self._session, self.model
        session.begin()
        for name in ("replay_buffer", "rollout_buffer"):
            if getattr(model, name, None) is not None:
                session.buffer(name, accessor(model, name))
        session.state_of("policy", model.policy)
        session.state_of("optimizer", getattr(model.policy, "optimizer", None))
        self._safe_point = session.watch.exporter.safe_point if session.watch is not None else None
        self._counted_steps = model.num_timesteps  # what came before is no progress of this run

    def _on_rollout_start(self) -> None:
        if self._measuring:
            self._session.phase(None)
        now = perf_counter()
        self._measuring = now - self._measured_at >= _MEASURED_SECONDS
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
            if dones is not None and (ended := int(count_nonzero(dones))):
                self._session.advance("episode", ended)
            if point.due:
                point.visit(stepping=True)
        return True

    def _on_rollout_end(self) -> None:
        if self._measuring:
            self._session.phase("train")

    def _on_training_end(self) -> None:
        self._safe_point = None
        self._measuring = False
        self._session.end()
