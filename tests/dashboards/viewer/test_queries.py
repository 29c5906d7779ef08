import asyncio
import json
import re
from dataclasses import replace

import pytest

from heapwatch_viewer.model import Variable
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.queries import ALL, choices, chosen_of, interpolate
from heapwatch_viewer.timerange import Window

WINDOW = Window(0, 3600, 30)
NAMED = '/trainer_name="(?<text>[^"]+)|instance="(?<value>[^"]+)/g'


class Answering:
    """Stands in for Prometheus: gives one answer, and remembers what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = None

    async def instant(self, expression, moment):
        self.asked = expression
        return self.answer

    async def label_values(self, label, selector, window):
        self.asked = (label, selector)
        return self.answer


def chosen_from(query, prometheus, regex="", **chosen):
    variable = Variable("instance", "Instance", query, regex, hidden=False, several=True)
    return asyncio.run(choices(variable, chosen, prometheus, WINDOW))


def test_several_values_become_a_regular_expression():
    chosen = {"instance": ("127.0.0.1:7777", "gpu-pod:7777")}
    assert (
        interpolate('up{instance=~"$instance"}', chosen, WINDOW)
        == 'up{instance=~"(127\\\\.0\\\\.0\\\\.1:7777|gpu\\\\-pod:7777)"}'
    )


def test_no_value_breaks_out_of_its_matcher():
    value = 'x"} or secret{a="\\\n'
    written = interpolate('up{instance=~"$instance"}', {"instance": (value,)}, WINDOW)
    inside = written.removeprefix('up{instance=~"').removesuffix('"}')
    assert re.fullmatch(json.loads(f'"{inside}"'), value)


def test_choices_are_narrowed_by_the_variables_before():
    prometheus = Answering(["b", "a"])
    found = chosen_from('label_values(up{job=~"$job"}, instance)', prometheus, job=("trainer",))
    assert found == {"a": "a", "b": "b"}
    assert prometheus.asked == ("instance", 'up{job=~"trainer"}')


def test_a_choice_has_a_value_and_a_text_of_its_own():
    labels = [{"instance": "a:1", "trainer_name": "walker"}, {"trainer_name": "ppo", "instance": "b:1"}]
    # Another life at the same address, longer ago.
    labels.append({"instance": "a:1", "trainer_name": "earlier"})
    prometheus = Answering([Series(one, [(0, 1.0)]) for one in labels])
    found = chosen_from("query_result(last_over_time(name[$__range]))", prometheus, NAMED)
    assert list(found.items()) == [("a:1", "walker"), ("b:1", "ppo")]
    assert prometheus.asked == "last_over_time(name[3600s])"


@pytest.mark.parametrize(
    ("wanted", "several", "one"),
    [
        (["b"], ("b",), "b"),
        (["b", "gone"], ("b", "gone"), "b"),
        (["gone"], ("gone",), "gone"),
        ([], (ALL,), "a"),
        (["b", ALL], (ALL,), "b"),
        ([ALL], (ALL,), "a"),
    ],
)
def test_what_is_wanted_is_never_replaced_by_something_else(wanted, several, one):
    variable = Variable("instance", "Trainer", "", "", hidden=False, several=True)
    assert chosen_of(variable, wanted, ["a", "b"]) == several
    assert chosen_of(replace(variable, several=False), wanted, ["a", "b"]) == (one,)


def test_where_there_is_nothing_to_choose_nothing_is_chosen():
    variable = Variable("instance", "Trainer", "", "", hidden=False, several=False)
    assert chosen_of(variable, [], []) == (ALL,)
