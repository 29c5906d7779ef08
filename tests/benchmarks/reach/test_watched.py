"""The program whose heap is measured says what the benchmark reads of it."""

import json
import os
import subprocess
import sys

import pytest

from benchmarks.reach.entered import PROGRAMS

pytestmark = pytest.mark.slow

BRIEFLY = "import heap; heap.PATIENCE = 0.1; heap.main(100)"


def test_a_heap_says_how_long_lists_and_collections_stopped_it(tmp_path):
    environment = {**os.environ, "HEAPWATCH_STATE": str(tmp_path)}
    said = subprocess.check_output([sys.executable, "-c", BRIEFLY], cwd=PROGRAMS, env=environment, timeout=60)
    assert json.loads(said).keys() == {"is_named", "named", "stall", "collection"}
