"""The exporter of a machine, served."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from heapwatch.machine.node import Node


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Node, str]]:
    monkeypatch.setenv("HEAPWATCH_WORKERS", "off")
    node = Node("pod")
    node.judge.step()
    yield node, node.start("127.0.0.1", 0)
    node.stop()


def test_it_serves_groups_a_verdict_and_its_name_and_cleans_nothing_up(served: tuple[Node, str]) -> None:
    node, address = served
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        series = answer.read().decode()
    for wanted in (
        'trainer_info{framework="machine"',
        "machine_group_memory_bytes{",
        "machine_group_processes{",
        'trainer_memory_verdict{verdict="too early"} 1.0',
        "machine_memory_available_bytes ",
    ):
        assert wanted in series
    with urllib.request.urlopen(f"http://{address}/explain", timeout=30) as answer:
        assert json.load(answer)["verdict"] == "too early"
    request = urllib.request.Request(f"http://{address}/force_cleanup", data=b"{}", method="POST")
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(request, timeout=30)
    folder = Path(os.environ["HEAPWATCH_TARGETS_DIR"])
    (target,) = folder.glob("*.json")
    assert address in target.read_text()
    node.stop()
    assert not target.exists()
