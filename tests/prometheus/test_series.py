"""Rules read only series that a trainer or a machine exports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.repository import REPOSITORY

_PAGE = (REPOSITORY / "docs" / "metrics.md").read_text()
EXPORTED = set(re.findall(r"`((?:machine|trainer)_[a-z0-9_]+)`", _PAGE))
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_SERIES = re.compile(r"(?<![:\w])(?:machine|trainer)(?:_[a-z0-9]+)+(?=[\s{\[(),\]|]|$)", re.MULTILINE)
LABELS = {"trainer_name", "trainer_job", "trainer_instance"}


@pytest.mark.parametrize(
    "rules", sorted((REPOSITORY / "prometheus" / "rules").glob("*.yml")), ids=lambda path: path.stem
)
def test_each_series_of_a_rule_is_exported(rules: Path) -> None:
    read = set(_SERIES.findall(_COMMENT.sub("", rules.read_text()))) - LABELS
    exported = EXPORTED | {f"{name}_{part}" for name in EXPORTED for part in ("sum", "count", "total")}
    assert read - exported == set()
