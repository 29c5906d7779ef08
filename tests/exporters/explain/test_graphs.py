"""Buffers that hold autograd graphs, in an explanation."""

from dataclasses import replace

from heapwatch.collectors.buffers import HeldGraphs
from heapwatch.explain.findings import Explanation, Finding, message
from heapwatch.explain.graphs import REMEDY, with_graphs

HELD = HeldGraphs("agent.memory.buffer", 900, 1000, 1000, 240e6)


def test_a_buffer_that_holds_graphs_is_a_leak_with_its_remedy():
    found = with_graphs(Explanation("healthy", 300.0, 0.0, 1.0), [HELD])
    assert found.verdict == "leak"
    (finding,) = found.findings
    assert (finding.kind, finding.path, finding.remedy, finding.is_leak) == (
        "buffer",
        "agent.memory.buffer",
        REMEDY,
        True,
    )
    assert "`agent.memory.buffer` (900 tensors with their autograd graphs, 240 kB each" in message(found)
    assert "detach().cpu()" in message(found)


def test_what_was_found_of_the_same_buffer_becomes_the_leak():
    filling = Finding("buffer", "root.agent.memory.buffer", "deque", 800, 2, 5.0, 6.0, 0.5, 1000)
    other = Finding("container", "root.losses", "list", 1, 2, 3.0, 4e6, 0.5)
    found = with_graphs(Explanation("filling", 300.0, 9.0, 1.0, (other, filling)), [HELD])
    assert [finding.path for finding in found.findings] == ["root.agent.memory.buffer", "root.losses"]
    assert found.findings[0].remedy == REMEDY
    assert found.findings[0].bytes_per_minute == 6.0


def test_without_such_a_buffer_nothing_changes():
    healthy = Explanation("healthy", 300.0, 0.0, 1.0)
    assert with_graphs(healthy, []) is healthy


def test_a_path_that_only_ends_alike_is_another_buffer():
    other = Finding("buffer", "agent.replay_buffer", "deque", 800, 2, 5.0, 6.0, 0.5, 1000)
    found = with_graphs(Explanation("filling", 300.0, 9.0, 1.0, (other,)), [replace(HELD, path="buffer")])
    assert not next(one for one in found.findings if one.path == "agent.replay_buffer").is_leak
