"""One table of limits: what the rules, the console, the status and the docs say is the same."""

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from docs import limits as rendered
from heapwatch.collectors.readings import Readings, growth_limits_of, limits_of
from heapwatch.judge.component import MEMORY, Component
from heapwatch.judge.limits import ALL_MEMORY, PROFILES, SEVERITIES, profile_named
from tests.support.repository import REPOSITORY


def readings(text):
    return Readings(parse(text))


def test_a_trainer_without_a_profile_is_measured_against_its_machine_alone():
    plain = readings("trainer_memory_available_bytes 1e11\ntrainer_memory_limit_bytes 2e11\n")
    assert limits_of(plain) == {ALL_MEMORY: {"warning": 85e9, "critical": 93e9, "emergency": 97e9}}
    assert growth_limits_of(plain) == {}
    assert limits_of(readings("")) == {}


def test_without_what_is_available_the_limit_counts():
    assert limits_of(readings("trainer_memory_limit_bytes 1e11\n"))[ALL_MEMORY]["warning"] == 85e9


@pytest.mark.parametrize("name", ["aggressive", "walker-aggressive"])
def test_the_aggressive_profile_has_two_names(name):
    chosen = readings(f'trainer_limit_profile{{profile="{name}"}} 1\n')
    assert limits_of(chosen)[MEMORY] == {"warning": 600e6, "critical": 900e6, "emergency": 2e9}
    assert growth_limits_of(chosen)[MEMORY] == {"minute": 20e6}


def test_its_own_limit_holds_and_the_rest_stays():
    own = readings(
        'trainer_limit_profile{profile="walker"} 1\n'
        'trainer_limit{resource="memory",component="",severity="warning"} 9e9\n'
        'trainer_limit{resource="bodies",component="",severity="critical"} 4000\n'
    )
    assert limits_of(own)[MEMORY] == {"warning": 9e9, "critical": 1.5e9, "emergency": 2e9}
    assert limits_of(own)[Component("bodies", "all")]["critical"] == 4000


def test_an_unknown_profile_is_one_clear_line():
    with pytest.raises(ValueError, match=r"'fast' is not known; allowed: default, walker, .*aggressive"):
        profile_named("fast")
    assert limits_of(readings('trainer_limit_profile{profile="of tomorrow"} 1\n')) == {}


def test_limits_rise_with_their_severity():
    for profile in PROFILES.values():
        for limits in profile.levels.values():
            given = [limits[severity] for severity in SEVERITIES if severity in limits]
            assert given == sorted(given)


def test_rules_and_docs_are_made_of_the_table():
    assert (REPOSITORY / rendered.RULES).read_text() == rendered.rules()
    page = (REPOSITORY / rendered.PAGE).read_text()
    assert page == rendered.page(page)
