"""TorchRL: `HeapwatchHook().register(trainer)`."""

from __future__ import annotations

from typing import Any

from torchrl.trainers import Trainer, TrainerHookBase

from heapwatch.integrations.session import Adapter, accessor


class HeapwatchHook(Adapter, TrainerHookBase):
    """Watches `trainer.train()`: its replay buffer, loss module and optimizer, collected frames, both phases.

    Its arguments are those of `heapwatch.integrations.session.Adapter`.
    """

    _framework = "torchrl"
    _trainer: Any = None

    def register(self, trainer: Trainer, name: str = "heapwatch") -> None:
        """Hook into `trainer`."""
        self._trainer = trainer
        trainer.register_op("setup", self._begin)
        trainer.register_op("pre_steps_log", self._collected)
        trainer.register_op("post_steps", self._optimised)
        trainer.register_op("shutdown", self._session.end)
        trainer.register_module(name, self)

    def state_dict(self) -> dict[str, Any]:
        """Nothing to save: a resumed run is watched from its start."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Nothing to load."""

    def _begin(self) -> None:
        trainer, session = self._trainer, self._session
        session.begin()
        # The buffer belongs to the trainer, or to the hook that fills it.
        for owner in (trainer, *trainer._modules.values()):
            if getattr(owner, "replay_buffer", None) is not None:
                session.buffer("replay_buffer", accessor(owner, "replay_buffer"))
                break
        session.state_of("loss_module", trainer.loss_module)  # which may be a plain function
        session.state_of("optimizer", trainer.optimizer)
        session.start_at("step", trainer.collected_frames)
        session.phase("collect")

    def _collected(self, batch: Any) -> None:
        self._session.phase("optimise")

    def _optimised(self) -> None:
        self._session.count("step", self._trainer.collected_frames)
        self._session.phase("collect")
