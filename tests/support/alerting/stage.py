"""A real Prometheus, and the receivers, trainers and Alertmanagers that a test asks for beside it."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.alerting.fake_trainer import Trainer
from tests.support.alerting.harness import Alertmanager, Prometheus, Receiver


class Stage:
    """Starts servers in a temporary folder and ends them all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = ExitStack()
        self._numbers = Counter[str]()
        self.prometheus = Prometheus(self.folder("prometheus"))

    def folder(self, name: str) -> Path:
        self._numbers[name] += 1
        folder = self._folder / f"{name}-{self._numbers[name]}"
        folder.mkdir()
        return folder

    def trainer(self, mode: str = "ok", prometheus: Prometheus | None = None) -> Trainer:
        """A trainer over its memory limit, its alert firing."""
        return self.trainers(mode, prometheus=prometheus)[0]

    def trainers(self, *modes: str, prometheus: Prometheus | None = None) -> list[Trainer]:
        trainers = [Trainer(mode) for mode in modes]
        for trainer in trainers:
            self._started.callback(trainer.stop)
        (prometheus or self.prometheus).watch(*trainers)
        return trainers

    def receiver(self, **given: object) -> Receiver:
        """A receiver, not started yet."""
        url = str(given.pop("prometheus_url", self.prometheus.url))
        receiver = Receiver(self.folder("receiver"), url, **given)
        self._started.callback(receiver.stop)
        return receiver

    def own_prometheus(self, *alertmanagers: Alertmanager) -> Prometheus:
        """A Prometheus that the test may stop, sending to these Alertmanagers."""
        addresses = [f"127.0.0.1:{alertmanager.port}" for alertmanager in alertmanagers]
        prometheus = Prometheus(self.folder("prometheus"), addresses)
        self._started.callback(prometheus.stop)
        return prometheus

    def alertmanager(self, receiver: Receiver) -> Alertmanager:
        alertmanager = Alertmanager(self.folder("alertmanager"), receiver.url)
        self._started.callback(alertmanager.stop)
        return alertmanager

    def clear(self) -> None:
        """End all but the Prometheus of every test: what the last test left makes the next one slow."""
        self._started.close()
        for target in (self.prometheus.folder / "targets").glob("*.json"):
            target.unlink()


@contextmanager
def stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="heapwatch-stage-") as folder:
        open_stage = Stage(Path(folder))
        try:
            yield open_stage
        finally:
            open_stage.clear()
            open_stage.prometheus.stop()
