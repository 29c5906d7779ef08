"""Stable-Baselines3: `model.learn(…, callback=HeapwatchCallback())`."""

from __future__ import annotations

from stable_baselines3.common.callbacks import BaseCallback
from typing_extensions import Unpack

from heapwatch.integrations.session import Options, accessor, new_session
from heapwatch.watch import Watch


class HeapwatchCallback(BaseCallback):
    """Watches a model while it learns: its replay or rollout buffer, its policy, both phases, its episodes.

    Args:
        watch: one that runs already; by default one is started with training and stopped with it.
        options: for `heapwatch.start`.

    """

    def __init__(self, watch: Watch | None = None, **options: Unpack[Options]) -> None:
        super().__init__()
        self._session = new_session("stable-baselines3", "stable-baselines3", watch, **options)
        self._episodes = 0

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
        # Steps as SB3 counts them; those of an earlier call are no progress of this run.
        session.start_at("step", model.num_timesteps)

    def _on_rollout_start(self) -> None:
        self._session.phase("rollout")

    def _on_step(self) -> bool:
        dones = self.locals.get("dones")
        if dones is not None:
            self._episodes += int(sum(dones))
            self._session.count("episode", self._episodes)
        self._session.count("step", self.num_timesteps)
        return True

    def _on_rollout_end(self) -> None:
        self._session.phase("train")

    def _on_training_end(self) -> None:
        self._session.end()
