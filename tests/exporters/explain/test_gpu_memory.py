"""Growth of the memory of GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from heapwatch.explain.findings import message
from heapwatch.explain.received import explanation_of
from heapwatch.judge.component import Component
from heapwatch.judge.trainer import Sample, TrainerJudge
from tests.support.judged_memory import MB, JudgedMemory, candidate, judged, memory


def on_gpu(per_minute: float, seconds: int, left: int | None = None, **about: Any) -> JudgedMemory:
    """Memory of a GPU that rises, of a process whose other memory stands still unless told otherwise."""
    found = memory(about.pop("ram", 0.0), seconds, **about)
    found.judge = TrainerJudge()
    for at in range(0, seconds, 5):
        held = per_minute * at / 60
        found.gpu.add(at, held)
        found.devices[0].add(at, held)
        if found.judge.is_due(at):
            found.judge.observe(at, Sample({Component("gpu_memory", "0"): held}))
    if left is not None:
        found.gpu_left = {0: left}
    return found


def test_a_list_of_tensors_on_a_gpu_is_a_leak_of_gpu_memory():
    found = judged(100, on_gpu(2400 * MB, 100, left=int(100e9)), candidate(2400, 1 * MB, 100))
    assert found.verdict == "leak"
    assert message(found).startswith("GPU memory grows by 2.4 GB/min.")
    assert found.ends_on_gpu
    assert found.time_left is not None
    assert found.time_left.least < 60 * 100e9 / 2400e6 < found.time_left.most
    assert "GPU memory ends in" in message(found)
    read = explanation_of(found.as_json())
    assert (read.ends_on_gpu, read.gpu_growth_bytes_per_minute) == (True, pytest.approx(2400 * MB, abs=1))


def test_growth_on_a_gpu_that_nothing_accounts_for_is_named_and_is_a_leak():
    minutes = 45
    found = judged(60 * minutes, on_gpu(50 * MB, 60 * minutes))
    (finding,) = found.findings
    assert (found.verdict, finding.kind) == ("leak", "gpu")
    assert found.time_left is None  # what is left is not known


def test_where_both_grow_the_part_on_gpus_is_said_and_the_earlier_end_counts():
    both = on_gpu(40 * MB, 100, left=int(500e9), ram=60 * MB)
    found = judged(100, both, candidate(5000, 20_000, 100))
    assert message(found).startswith("Memory grows by 100 MB/min, 40 MB/min of it on GPUs.")
    assert not found.ends_on_gpu
    both.gpu_left = {0: int(1e9)}
    found = judged(100, both, candidate(5000, 20_000, 100))
    assert found.ends_on_gpu


@pytest.mark.parametrize(("left", "verdict"), [(100e9, "filling"), (10e9, "will not fit")])
def test_a_buffer_on_a_gpu_is_compared_with_the_memory_of_the_gpu(left, verdict):
    fills = on_gpu(2400 * MB, 200, left=int(left), limit=1e9)  # of RAM much less is left
    found = judged(200, fills, candidate(2400, 1 * MB, 200, capacity=50_000))
    assert found.verdict == verdict
    assert "of GPU memory is left" in message(found) or verdict == "filling"
