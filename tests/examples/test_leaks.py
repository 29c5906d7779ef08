import pytest

from examples.common.leaks import LeakSwitches, parse, write
from tests.support.unreadable_files import UNREADABLE

ALLOWED = {"static": "bodies", "memory": "MB"}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_units_become_due_at_their_rate(tmp_path):
    clock = Clock()
    path = tmp_path / "leaks.json"
    write(path, {"static": 90.0})
    switches = LeakSwitches(path, ALLOWED, clock)
    due = 0
    for _ in range(40):
        clock.now += 0.5
        due += switches.due()["static"]
    assert due == 30


def test_leaks_are_switched_while_running(tmp_path):
    clock = Clock()
    path = tmp_path / "leaks.json"
    switches = LeakSwitches(path, ALLOWED, clock)
    assert switches.due() == {}
    write(path, {"memory": 60.0})
    clock.now += 2
    switches.due()
    clock.now += 2
    assert switches.due() == {"memory": 2}
    write(path, {})
    clock.now += 2
    assert switches.due() == {}


def test_a_broken_file_changes_nothing_and_says_so(tmp_path, capsys):
    clock = Clock()
    path = tmp_path / "leaks.json"
    write(path, {"memory": 60.0})
    switches = LeakSwitches(path, ALLOWED, clock)
    path.write_text("{half")
    clock.now += 2
    switches.due()
    assert switches.rates == {"memory": 60.0}
    assert "ignored" in capsys.readouterr().out


@pytest.mark.parametrize("kind", sorted(UNREADABLE))
def test_whatever_has_the_name_of_the_switches_the_trainer_continues(tmp_path, kind, capsys):
    UNREADABLE[kind](tmp_path / "leaks.json")
    switches = LeakSwitches(tmp_path / "leaks.json", ALLOWED, Clock())
    assert switches.due() == {}
    assert capsys.readouterr().out.count("ignored") == 1


@pytest.mark.parametrize("setting", ["stat=1", "static", "static=fast", "static=-1", "static=nan"])
def test_a_wrong_setting_names_what_is_allowed(setting):
    with pytest.raises(ValueError, match="bodies"):
        parse([setting], ALLOWED)
