"""A page about a trainer says nothing of an earlier process at its address."""

import re
from typing import Any

import pytest

from heapwatch_dashboards import navigation
from tests.dashboards.asking import run
from tests.dashboards.documents import Target, targets
from tests.dashboards.two_lives import AGES

pytestmark = pytest.mark.slow

# What happened in the range, whichever process it was; and a limit is drawn by all of the range.
OF_THE_RANGE = re.compile(r" limit| offset \$__interval|sum_over_time\(clamp_min")


def of_now() -> list[Target]:
    """The queries of the pages about one trainer."""
    pages = set(navigation.TITLES) - {*navigation.OF_SEVERAL, navigation.STACK}
    return [
        one
        for one in targets()
        if one.dashboard in pages
        and not OF_THE_RANGE.search(one.target["expr"] + one.target.get("legendFormat", ""))
    ]


def said(answer: list[dict[str, Any]]) -> dict[str, float]:
    """The last value of each series that there is at the end, by its labels without the trainer's name."""
    pairs = {str(sorted(one["metric"].items())): one.get("values", [one.get("value")])[-1] for one in answer}
    last = max((moment for moment, _ in pairs.values()), default=0)
    return {
        re.sub(r"a(?:gain|lone)-", "", labels): float(value)
        for labels, (moment, value) in pairs.items()
        if moment == last and "10:00" not in labels
    }


@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("target", of_now(), ids=str)
def test_a_process_that_ran_before_changes_nothing(target: Target, age: int, url: str) -> None:
    alone = said(run(url, target, 1.5, f"alone-{age}:7777"))
    again = said(run(url, target, 1.5, f"again-{age}:7777"))
    assert again == pytest.approx(alone, rel=1e-3)
