"""What every fault test needs: real servers, and a count of what was lost or doubled."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from heapwatch_stack.binaries import find
from heapwatch_stack.settings import Settings
from tests.alerting.harness import Alertmanager, Prometheus, Receiver, Trainer


@dataclass
class Outcome:
    """Of one fault: how often it was tried, cleanups that were due and not done, cleanups too many."""

    tried: int = 0
    lost: int = 0
    doubled: int = 0
    recoveries: list[float] = field(default_factory=list)
    note: str = ""

    def count(self, trainer: Trainer, expected: int = 1) -> None:
        """One more try, which should have cleaned this trainer up so often."""
        self.tried += 1
        done = len(trainer.done)
        repeated = sum(count - 1 for count in Counter(one["request_id"] for one in trainer.done).values())
        self.lost += max(0, expected - done)
        self.doubled += max(repeated, done - expected)

    @contextmanager
    def recovery(self) -> Iterator[None]:
        """Time a recovery: from the end of the fault to everything being settled."""
        begin = time.monotonic()
        yield
        self.recoveries.append(time.monotonic() - begin)


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

    def own_prometheus(self, *alertmanagers: Alertmanager, scrape: str = "1s") -> Prometheus:
        """A Prometheus that the test may stop, sending to these Alertmanagers."""
        addresses = [f"127.0.0.1:{alertmanager.port}" for alertmanager in alertmanagers]
        return self._own(Prometheus(self.folder("prometheus"), addresses, scrape=scrape))

    def alertmanager(
        self, receiver: Receiver, cluster_port: int = 0, peers: tuple[int, ...] = ()
    ) -> Alertmanager:
        folder = self.folder("alertmanager")
        return self._own(Alertmanager(folder, receiver.url, peers=peers, cluster_port=cluster_port))

    def whole_path(self, scrape: str = "1s") -> tuple[Receiver, Alertmanager, Prometheus]:
        """Prometheus, the Alertmanager it sends to, and the receiver behind that, which is not started."""
        receiver = self.receiver()
        alertmanager = self.alertmanager(receiver)
        prometheus = self.own_prometheus(alertmanager, scrape=scrape)
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


Fault = Callable[[Stage, Outcome], None]
FAULTS: dict[str, Fault] = {}


def fault(name: str, tries: int = 1) -> Callable[[Fault], Fault]:
    """Put a fault on the list, under the name the table shows; each try has processes of its own."""

    def add(function: Fault) -> Fault:
        def test(stage: Stage, outcome: Outcome) -> None:
            for _ in range(tries):
                function(stage, outcome)
                stage.clear()

        FAULTS[name] = test
        return function

    return add


def put_programs_on_path() -> None:
    """Prometheus and Alertmanager of the stack, which are downloaded where they are missing."""
    found = find(Settings.from_environment(), print)
    folders = [str(binary.path.parent) for binary in (found.prometheus, found.alertmanager)]
    os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])


@contextmanager
def stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="heapwatch-faults-") as folder:
        open_stage = Stage(Path(folder))
        try:
            yield open_stage
        finally:
            open_stage.close()
