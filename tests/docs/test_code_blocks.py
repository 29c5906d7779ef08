"""Every Python block of README and docs compiles; those that need no more than the library run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import BLOCK, PAGES, ROOT

BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
]
# Stand-ins for what a page takes for granted, before each block: a trainer of the reader's own.
SETTING = """
import collections, types
import heapwatch
watch = heapwatch.start("docs", port=0)
agent = types.SimpleNamespace(replay=collections.deque(maxlen=9), policy=None)
trainer = types.SimpleNamespace(deaths=collections.deque(maxlen=9), history=[], population=[])
class TradingEnvironment: ...
class DDPGAgent: ...
class World: bodyCount = 0; bodies = ()
policy = types.SimpleNamespace(state_dict=dict)
world, robots, training, losses = World(), [], range(3), []
updates, state, batch = 3, {}, {}
def train_step(state, batch): return state, {}
"""
# A block that imports anything else is only compiled: the framework's own tests run its adapter.
NEEDS_MORE = re.compile(
    r"^(from|import) (?!collections|prometheus_client|heapwatch(?!\.(integrations|trackers)))", re.MULTILINE
)


@pytest.mark.parametrize("block", BLOCKS)
def test_it_compiles(block: str) -> None:
    compile(block, "block", "exec")


@pytest.mark.parametrize("block", [one for one in BLOCKS if not NEEDS_MORE.search(one.values[0])])
def test_it_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "docs"}
    exec(SETTING, names)
    first = names["watch"]
    try:
        exec(block, names)
    finally:
        for watch in {first, names["watch"]}:
            watch.stop()
