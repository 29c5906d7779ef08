"""With nothing installed but prometheus-client and psutil, the library runs and says what is missing."""

import importlib
import json
import subprocess
import sys

import pytest

import heapwatch.cli

pytestmark = pytest.mark.slow

TRAINER = """
import importlib.abc, json, logging, sys
logging.basicConfig(level=logging.INFO)

BLOCKED = {"torch", "numpy", "pynvml", "Box2D", "fastapi", "uvicorn", "httpx", "yaml", "pydantic", "rich"}

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())

import urllib.request
from collections import deque
import heapwatch

class Robot:
    pass

class World:
    bodyCount = 2
    bodies = ()

robots, replay, deaths = [Robot(), Robot()], deque([[1.0] * 4] * 50, maxlen=100), deque(maxlen=9)
with heapwatch.start("bare", port=0, interval=0.001, walker_names=True) as watch:
    world = World()
    watch.bodies(world)
    watch.entities("robots", robots)
    watch.events("death", deaths)
    watch.buffer("replay", replay)
    watch.objects(Robot)
    watch.size("robots", lambda: robots)
    watch.on_cleanup(lambda: {"robots": 1})
    with watch.phase("train"):
        for _ in range(10):
            watch.step()
    assert watch.cleanup().errors == []
    with urllib.request.urlopen(watch.server.url + "metrics", timeout=20) as response:
        text = response.read().decode()
assert not BLOCKED & set(sys.modules), BLOCKED & set(sys.modules)
series = dict(line.rpartition(" ")[::2] for line in text.splitlines() if not line.startswith("#"))
print(json.dumps(series))
"""


def test_the_library_runs_without_any_extra():
    done = subprocess.run(
        [sys.executable, "-c", TRAINER], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    series = {name: float(number) for name, number in json.loads(done.stdout).items()}
    assert series['trainer_entities{type="robots"}'] == 2
    assert series['trainer_event_list_capacity_items{list="death"}'] == 9
    assert series['trainer_buffer_items{buffer="replay"}'] == 50
    assert series['trainer_objects{type="Robot"}'] == 2
    assert series['trainer_object_size_bytes{object="robots"}'] > 0
    assert series['trainer_progress_total{unit="step"}'] == 10
    assert series['trainer_process_resident_memory_bytes{role="trainer"}'] > 10e6
    errors = {name: count for name, count in series.items() if "collect_errors" in name and count}
    assert errors == {}
    assert not [name for name in series if name.startswith("trainer_gpu")]
    assert "GPU" not in done.stderr  # where there is no library for it, there is nothing to say


def test_windows_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(ImportError, match=r"^heapwatch runs on Linux and macOS; on Windows .*WSL 2$"):
        heapwatch.__getattr__("start")
    with pytest.raises(SystemExit, match="WSL 2"):
        importlib.reload(heapwatch.cli)
