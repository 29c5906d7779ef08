"""Real servers for the tests between an alert and its cleanup."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.alerting.harness import Alertmanager, Prometheus, Receiver, Trainer


class Stage:
    """Starts processes in a temporary folder and ends them all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._owners: list[Trainer | Receiver | Prometheus | Alertmanager] = []
        self._numbers = Counter[str]()
        self.prometheus = self._own(Prometheus(self.folder("prometheus")))

    def folder(self, name: str) -> Path:
        self._numbers[name] += 1
        folder = self._folder / f"{name}-{self._numbers[name]}"
        folder.mkdir()
        return folder

    def trainer(self, mode: str = "ok", prometheus: Prometheus | None = None) -> Trainer:
        """A trainer over its memory limit, its alert firing."""
        trainer = self._own(Trainer(self.folder("trainer"), mode))
        (prometheus or self.prometheus).watch(trainer)
        return trainer

    def receiver(self, **settings: object) -> Receiver:
        """A receiver, not started yet."""
        receiver = Receiver(
            self.folder("receiver"), str(settings.pop("prometheus_url", self.prometheus.url)), **settings
        )
        self._owners.append(receiver)
        return receiver

    def own_prometheus(self, *alertmanagers: Alertmanager) -> Prometheus:
        """A Prometheus that the test may stop, sending to these Alertmanagers."""
        addresses = [f"127.0.0.1:{alertmanager.port}" for alertmanager in alertmanagers]
        return self._own(Prometheus(self.folder("prometheus"), addresses))

    def alertmanager(self, receiver: Receiver) -> Alertmanager:
        return self._own(Alertmanager(self.folder("alertmanager"), receiver.url))

    def whole_path(self) -> tuple[Receiver, Alertmanager, Prometheus]:
        """Prometheus, the Alertmanager it sends to, and the receiver behind that, which is not started."""
        receiver = self.receiver()
        alertmanager = self.alertmanager(receiver)
        prometheus = self.own_prometheus(alertmanager)
        receiver.settings["prometheus_url"] = prometheus.url
        return receiver, alertmanager, prometheus

    def clear(self) -> None:
        """End all but the Prometheus of every test: what the last test left makes the next one slow."""
        self._end(self._owners[1:])
        del self._owners[1:]
        for target in (self.prometheus.folder / "targets").glob("*.json"):
            target.unlink()

    def close(self) -> None:
        self._end(self._owners)

    @staticmethod
    def _end(owners: list[Trainer | Receiver | Prometheus | Alertmanager]) -> None:
        for owner in reversed(owners):
            if hasattr(owner, "program"):
                owner.program.stop()

    def _own(self, owner):
        self._owners.append(owner)
        return owner


@contextmanager
def stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="heapwatch-faults-") as folder:
        open_stage = Stage(Path(folder))
        try:
            yield open_stage
        finally:
            open_stage.close()
