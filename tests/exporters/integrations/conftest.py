"""What an adapter had exposed when its training ended."""

import pytest

from heapwatch.collectors.readings import Readings
from heapwatch.integrations.session import Session


@pytest.fixture(autouse=True)
def targets(tmp_path, monkeypatch):
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", str(tmp_path / "targets"))


@pytest.fixture
def size_of():
    """Bytes of a named object in RAM and on a GPU, where the framework takes one."""

    def size(seen, name):
        elsewhere = seen.value("trainer_object_size_offheap_bytes", object=name, place="gpu")
        return seen.value("trainer_object_size_bytes", object=name) + (elsewhere or 0)

    return size


@pytest.fixture
def exposed(monkeypatch):
    """Filled at the end of each session: `exposed[-1]` reads the last one's series."""
    found = []
    end = Session.end

    def read_and_end(self):
        if self.watch is not None:
            self.phase(None)
            point = self.watch.exporter.safe_point
            point.sample_now(*(task.sampler for task in point.tasks))
            found.append(Readings(self.watch.exporter.snapshots.take(30).families))
        end(self)

    monkeypatch.setattr(Session, "end", read_and_end)
    return found
