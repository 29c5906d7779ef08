"""The tutorial's run says what the page says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "tutorial" / "train.py"


def test_the_leak_of_the_tutorial_is_named_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    command = [sys.executable, "-m", "heapwatch.cli.main", "run", "--seconds", "60", "--json", str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    explanation = json.loads(done.stdout)
    leak = explanation["findings"][0]
    path, line = re.search(r"`(train\(\)\S+)` .*?train\.py:(\d+)", PAGE, re.DOTALL).groups()

    assert explanation["verdict"] == "leak"
    assert (leak["path"], leak["site"]["line"]) == (path, int(line))
    assert "history.append" in SCRIPT.read_text().splitlines()[int(line) - 1]


PAGE = (ROOT / "docs" / "tutorial.md").read_text()
