import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heapwatch.runtime.labels import OTHER, boot, checked_name, keep_largest, machine


@pytest.mark.parametrize("name", ["policy.state_dict", "lstm[0]", "ppo/critic-2", "food sources", "é"])
def test_names_that_are_allowed(name):
    assert checked_name("events", name) == name


@pytest.mark.parametrize("name", ["", " death", "a\nb", 'a"b', "x" * 101, None])
def test_names_that_are_not(name):
    with pytest.raises(ValueError, match=r"events name .* is not allowed: use 1 to 100"):
        checked_name("events", name)


@given(st.dictionaries(st.text(min_size=1), st.integers(0, 1000), max_size=30), st.integers(1, 10))
def test_folding_keeps_the_sum_and_the_largest(values, limit):
    kept, rest = keep_largest(values, limit)
    assert sum(kept.values()) == sum(values.values())
    assert rest == max(0, len(values) - limit)
    assert len(kept) <= limit + 1
    dropped = [value for name, value in values.items() if name not in kept]
    assert all(value >= max(dropped, default=0) for name, value in kept.items() if name != OTHER)


def test_processes_of_one_machine_agree_and_do_not_show_its_boot_id():
    code = "from heapwatch.runtime.labels import machine; print(machine())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == machine()
    assert machine() not in boot().replace("-", "")
