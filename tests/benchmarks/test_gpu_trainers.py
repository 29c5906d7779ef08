"""What `make gpu-test` says of trainers, without a GPU: when a finding is right, and what stays after it."""

import os

import psutil
import pytest

from benchmarks import gpu_trainers
from benchmarks.reach.watched import line_of

RIGHT = {
    "path": "train().learner.history",
    "site": {"file": "/x/gpu_training.py", "line": line_of("gpu_training", gpu_trainers.LINE)},
}


@pytest.mark.parametrize(
    ("change", "named"),
    [({}, True), ({"path": None}, False), ({"path": "train().losses"}, False), ({"site": None}, False)],
)
def test_a_finding_is_right_with_the_path_and_the_line(change, named):
    assert gpu_trainers.is_named(RIGHT | change) is named


def test_what_stays_are_threads_sockets_and_devices():
    threads, _, devices = gpu_trainers._kept(os.getpid())
    assert threads == psutil.Process().num_threads()
    assert devices == 0
