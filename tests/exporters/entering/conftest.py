import pytest

from heapwatch.entering import agent


@pytest.fixture(autouse=True)
def short_endings(monkeypatch):
    """An ending waits for all threads of ours, and the one for SIGTERM stays in the process of the tests."""
    monkeypatch.setattr(agent, "_ENDING_SECONDS", 0.1)
