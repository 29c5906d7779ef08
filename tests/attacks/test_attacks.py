"""The quick attacks, and that SECURITY.md lists them all; `make test-attacks` tries every one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.alerting.stage import stage
from tests.attacks import __main__ as suite
from tests.attacks.record import ATTACKS, Exchange, NotHere

pytestmark = pytest.mark.slow

SECURITY = Path(__file__).parents[2] / "SECURITY.md"


@pytest.fixture(scope="module")
def scene():
    with stage() as scene:
        yield scene


@pytest.mark.parametrize("row", [one.row for one in ATTACKS.values() if one.quick])
def test_the_defence_holds(scene, row):
    exchange = Exchange()
    try:
        ATTACKS[row].run(scene, exchange)
    except NotHere as lacking:
        pytest.skip(str(lacking))
    assert exchange.lines


def test_security_md_lists_every_attack():
    assert suite.SUITE
    listed = re.findall(r"^\| ([^|]+?) \| [^|]+ \|$", SECURITY.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(row for row in listed if row in ATTACKS) == sorted(ATTACKS)
