"""RLlib: `config.callbacks(HeapwatchCallback)`."""

from __future__ import annotations

from typing import Any

from ray.rllib.callbacks.callbacks import RLlibCallback

from heapwatch.integrations.session import Adapter, Options, accessor


class HeapwatchCallback(Adapter, RLlibCallback):
    """Watches an algorithm in its driver process: iterations, steps, episodes, evaluation, its replay buffer.

    Environment runners are Ray actors, children of Ray and not of the driver: their memory is not counted
    here. RLlib makes the callback itself, so options come from the environment (HEAPWATCH_*), or from a
    subclass that sets `options`: `name`, `record`, `port` and the others of
    `heapwatch.integrations.session.Options`.
    """

    _framework = "rllib"
    options: Options = {}  # noqa: RUF012 - a subclass replaces it, as RLlib's configuration classes do

    def __init__(self) -> None:
        super().__init__(**self.options)
        self._iterations = 0

    def on_algorithm_init(self, *, algorithm: Any, metrics_logger: Any = None, **kwargs: Any) -> None:
        """Start watching; iterations count as `epoch`."""
        session = self._session
        session.begin()
        if getattr(algorithm, "local_replay_buffer", None) is not None:
            session.buffer("replay_buffer", accessor(algorithm, "local_replay_buffer"))
        session.phase("iteration")

    def on_train_result(
        self, *, algorithm: Any, metrics_logger: Any = None, result: Any, **kwargs: Any
    ) -> None:
        """Count an iteration."""
        session = self._session
        runners = result.get("env_runners", {})
        session.count("step", int(runners.get("num_env_steps_sampled_lifetime", 0)))
        session.count("episode", int(runners.get("num_episodes_lifetime", 0)))
        self._iterations += 1
        session.count("epoch", self._iterations)
        session.phase("iteration")

    def on_evaluate_start(self, *, algorithm: Any, metrics_logger: Any = None, **kwargs: Any) -> None:
        """The phase `evaluate` begins."""
        self._session.phase("evaluate")

    def on_evaluate_end(
        self, *, algorithm: Any, metrics_logger: Any = None, evaluation_metrics: Any, **kwargs: Any
    ) -> None:
        """The phase `iteration` continues."""
        self._session.phase("iteration")
