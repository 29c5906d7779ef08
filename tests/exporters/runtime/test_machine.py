import subprocess
import sys

from heapwatch.runtime.machine import boot, machine


def test_processes_of_one_machine_agree_and_do_not_show_its_boot_id():
    code = "from heapwatch.runtime.machine import machine; print(machine())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == machine()
    assert machine() not in boot().replace("-", "")
