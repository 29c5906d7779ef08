"""Programs that tests run and pip does not bring."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest


def find(*names: str, brought_by: str = "make tools") -> str:
    """The path of the program with one of these names; a test that asks for one that is absent is skipped."""
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"needs {names[0]} on PATH: {brought_by}")
    return path


def amtool(*arguments: str) -> str:
    """What it prints; fails unless it accepts what it is given."""
    return _accepted([find("amtool"), *arguments])


def promtool(*arguments: object) -> str:
    """What it prints; fails unless it accepts what it is given. PROMTOOL names another one."""
    # a seventh of its time is garbage collection
    return _accepted([find(os.environ.get("PROMTOOL", "promtool")), *map(str, arguments)], GOGC="400")


def promtool_tests(
    folder: Path, *tests: Mapping[str, object], rules: Sequence[Mapping[str, object]] = (), **options: object
) -> None:
    """Have promtool evaluate its tests over rules.

    Args:
        folder: for the files.
        tests: promtool's: `interval`, `input_series`, and `promql_expr_test` or `alert_rule_test`.
        rules: groups of rules.
        options: of the whole, such as `evaluation_interval`.

    """
    (folder / "rules.yml").write_text(json.dumps({"groups": list(rules)}))  # JSON is YAML
    document = {"rule_files": ["rules.yml"], "tests": list(tests), **options}
    (folder / "test.yml").write_text(json.dumps(document))
    promtool("test", "rules", folder / "test.yml")


def _accepted(command: list[str], **environment: str) -> str:
    done = subprocess.run(
        command, env=os.environ | environment, text=True, capture_output=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
