"""Hugging Face Transformers, and TRL with it: `Trainer(callbacks=[HeapwatchCallback()])`."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from heapwatch.integrations.session import Adapter


class HeapwatchCallback(Adapter, TrainerCallback):
    """Watches a `Trainer`: model, optimizer, logged history, steps and epochs, evaluation and saving.

    Its arguments are those of `heapwatch.integrations.session.Adapter`.
    """

    _framework = "transformers"

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start watching."""
        session = self._session
        session.begin()
        for name in ("model", "optimizer"):
            session.state_of(name, kwargs.get(name))
        session.size("log_history", lambda: state.log_history)
        session.start_at("step", state.global_step)
        session.start_at("epoch", round(state.epoch or 0))

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """The phase `train` begins."""
        self._session.phase("train")

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count a step."""
        self._session.count("step", state.global_step)
        if control.should_evaluate:
            self._session.phase("evaluate")

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """The phase `train` continues after an evaluation."""
        self._session.phase("train")

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count an epoch."""
        self._session.phase("evaluate" if control.should_evaluate else None)
        self._session.count("epoch", round(state.epoch or 0))

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Stop watching."""
        self._session.end()
