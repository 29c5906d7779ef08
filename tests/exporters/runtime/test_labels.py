import subprocess
import sys

import pytest

from heapwatch.runtime.labels import boot, checked_name, machine


@pytest.mark.parametrize("name", ["policy.state_dict", "lstm[0]", "ppo/critic-2", "food sources", "é"])
def test_names_that_are_allowed(name):
    assert checked_name("events", name) == name


@pytest.mark.parametrize("name", ["", " death", "a\nb", 'a"b', "x" * 101, None])
def test_names_that_are_not(name):
    with pytest.raises(ValueError, match=r"events name .* is not allowed: use 1 to 100"):
        checked_name("events", name)


def test_processes_of_one_machine_agree_and_do_not_show_its_boot_id():
    code = "from heapwatch.runtime.labels import machine; print(machine())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == machine()
    assert machine() not in boot().replace("-", "")
