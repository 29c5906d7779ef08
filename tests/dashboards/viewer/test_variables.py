import asyncio
import json
import re

import pytest

from heapwatch_viewer.model import Variable
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.timerange import Window
from heapwatch_viewer.variables import ALL, Selection, choices, interpolate, settle

WINDOW = Window(0, 3600, 30)


def variable(**changes):
    fields = {
        "name": "instance",
        "label": "Instance",
        "kind": "query",
        "query": 'label_values(up{job=~"$job"}, instance)',
        "regex": "",
        "multi": True,
        "include_all": True,
        "all_value": "",
        "hidden": False,
        "default": (),
    }
    return Variable(**(fields | changes))


NAMED = '/trainer_name="(?<text>[^"]+)|instance="(?<value>[^"]+)/g'


class Names:
    """Stands in for Prometheus: answers a query with these series."""

    def __init__(self, series):
        self.series = series
        self.asked = None

    async def instant(self, expression, moment):
        self.asked = expression
        return self.series


class Labels:
    """Stands in for Prometheus: remembers what it was asked."""

    def __init__(self, values):
        self.values = values
        self.asked = None

    async def label_values(self, label, selector, window):
        self.asked = (label, selector)
        return self.values


def test_several_values_become_a_regular_expression():
    chosen = {"instance": Selection(("127.0.0.1:7777", "gpu-pod:7777"), as_regex=True)}
    assert (
        interpolate('up{instance=~"$instance"}', chosen, WINDOW)
        == 'up{instance=~"(127\\\\.0\\\\.0\\\\.1:7777|gpu\\\\-pod:7777)"}'
    )


@pytest.mark.parametrize("as_regex", [True, False])
def test_no_value_breaks_out_of_its_matcher(as_regex):
    evil = 'x"} or secret{a="\\\n'
    written = interpolate('up{instance=~"$instance"}', {"instance": Selection((evil,), as_regex)}, WINDOW)
    inside = written.removeprefix('up{instance=~"').removesuffix('"}')
    value = json.loads(f'"{inside}"')
    assert re.fullmatch(value, evil) if as_regex else value == evil


def test_all_is_everything_and_a_plain_variable_stays_plain():
    chosen = {"instance": Selection((ALL,), as_regex=True), "phase": Selection(("a.b",))}
    assert interpolate("${instance} $phase $unknown", chosen, WINDOW) == ".* a.b $unknown"


def test_grafanas_own_variables():
    assert interpolate("rate(x[$__rate_interval]) $__range", {}, WINDOW) == "rate(x[60s]) 3600s"


def test_choices_are_narrowed_by_the_variables_before():
    labels = Labels(["b", "a"])
    chosen = {"job": Selection(("trainer",))}
    assert asyncio.run(choices(variable(), chosen, labels, WINDOW)) == {"a": "a", "b": "b"}
    assert labels.asked == ("instance", 'up{job=~"trainer"}')


def test_a_choice_has_a_value_and_a_text_of_its_own():
    asked = variable(query="query_result(last_over_time(name[$__range]))", regex=NAMED)
    labels = [{"instance": "a:1", "trainer_name": "walker"}, {"trainer_name": "ppo", "instance": "b:1"}]
    # Another life at the same address, longer ago.
    labels.append({"instance": "a:1", "trainer_name": "earlier"})
    prometheus = Names([Series(one, [(0, 1.0)]) for one in labels])
    assert asyncio.run(choices(asked, {}, prometheus, WINDOW)) == {"b:1": "ppo", "a:1": "walker"}
    assert prometheus.asked == "last_over_time(name[3600s])"


def test_an_unknown_kind_of_query_is_refused_by_name():
    with pytest.raises(ValueError, match=r"instance.*label_values"):
        asyncio.run(choices(variable(query="metrics(up)"), {}, Labels([]), WINDOW))


def test_what_was_wanted_is_kept_only_where_it_exists():
    assert settle(variable(), ["a", "gone"], ["a", "b"]).values == ("a",)
    assert settle(variable(), ["gone"], ["a", "b"]).values == (ALL,)
    assert settle(variable(include_all=False, multi=False), [], ["a", "b"]).values == ("a",)
    assert settle(variable(include_all=False), [], []).values == ()
