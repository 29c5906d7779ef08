import os
import re
import signal
import subprocess
import sys
import textwrap
import urllib.request
from types import SimpleNamespace

import psutil
import pynvml
import pytest
from prometheus_client.parser import text_string_to_metric_families

from heapwatch.analysis.readings import Readings
from heapwatch.attach import Attachment, CannotAttach, name_of
from heapwatch.cli.main import main

FOREIGN = """
    import subprocess, sys, time
    held = b"x" * 200_000_000
    files = [open("/dev/null") for _ in range(50)]
    child = subprocess.Popen([sys.executable, "-c", "h = b'x' * 60_000_000\\nprint(1, flush=True)\\ninput()"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def foreign(tmp_path):
    """A process that knows nothing of heapwatch: 200 MB, fifty open files, and a child with 60 MB."""
    script = tmp_path / "train_robots.py"
    script.write_text(textwrap.dedent(FOREIGN))
    with subprocess.Popen(
        [sys.executable, str(script), "--key=s3cret"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def scrape(url):
    with urllib.request.urlopen(f"{url}metrics") as response:
        return response.read().decode()


def scraped(pid):
    """What an exporter of this process serves."""
    attachment = Attachment(pid, port=0)
    attachment.start()
    try:
        return scrape(attachment.server.url)
    finally:
        attachment.stop()


def test_process_tree_shows_under_the_contracts_names(foreign):
    text = scraped(foreign.pid)
    readings = Readings(text_string_to_metric_families(text))
    resident = readings.by("trainer_process_resident_memory_bytes", "role")
    assert 200e6 < resident["trainer"] < 260e6
    assert 60e6 < resident["worker"] < 120e6
    assert readings.value("trainer_process_unique_memory_bytes", role="trainer") > 200e6
    assert readings.value("trainer_processes", role="worker") == 1
    assert readings.value("trainer_process_open_files", role="trainer") >= 53
    assert readings.value("trainer_process_cpu_seconds_total", role="trainer") > 0
    assert readings.value("trainer_memory_limit_bytes") > 0
    started = psutil.Process(foreign.pid).create_time()
    assert readings.value("process_start_time_seconds") == pytest.approx(started, abs=1.5)
    assert readings.labels("trainer_info")["trainer"] == "train_robots"
    assert "s3cret" not in text


@pytest.fixture
def one_gpu(monkeypatch):
    """NVML's functions over one GPU; `processes` are those that it lists."""
    processes = []

    def unsupported(*_arguments):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    answers = {
        "nvmlInit": None,
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": "gpu",
        "nvmlDeviceGetUUID": "GPU-1",
        "nvmlDeviceGetName": "H200",
        "nvmlSystemGetDriverVersion": "570",
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(
            used=9_000_000_000, total=80_000_000_000, free=70_000_000_000, reserved=1_000_000_000
        ),
        "nvmlDeviceGetComputeRunningProcesses": processes,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, lambda *_arguments, answer=answer: answer)
    for name in ("UtilizationRates", "Temperature", "PowerUsage", "GraphicsRunningProcesses"):
        monkeypatch.setattr(pynvml, f"nvmlDeviceGet{name}", unsupported)
    return processes


def test_gpu_memory_is_that_of_the_process_and_its_children(foreign, one_gpu):
    (child,) = psutil.Process(foreign.pid).children()
    for pid, used in ((foreign.pid, 3_000_000_000), (child.pid, 2_000_000_000), (os.getpid(), 4_000_000_000)):
        one_gpu.append(SimpleNamespace(pid=pid, usedGpuMemory=used))
    readings = Readings(text_string_to_metric_families(scraped(foreign.pid)))
    assert readings.by("trainer_gpu_process_memory_bytes", "device") == {"0": 5e9}
    assert readings.by("trainer_gpu_memory_used_bytes", "device") == {"0": 9e9}


def attach(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "heapwatch.cli.main", "attach", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_command_serves_until_the_process_ends_and_removes_its_target(foreign, tmp_path):
    with attach(foreign.pid, "--port", 0, "--outside") as command:
        line = command.stdout.readline()
        assert str(foreign.pid) in line
        url = re.search(r"http://\S+/", line)[0]
        assert "trainer_process_resident_memory_bytes" in scrape(url)
        (target,) = (tmp_path / "targets").glob("*.json")
        assert url.split("/")[2] in target.read_text()
        foreign.kill()
        output, _ = command.communicate(timeout=30)
        assert command.returncode == 0
    assert "has ended" in output
    assert not list((tmp_path / "targets").iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_command_stops_cleanly(foreign, tmp_path, number):
    with attach(foreign.pid, "--port", 0, "--outside") as command:
        command.stdout.readline()
        command.send_signal(number)
        _, errors = command.communicate(timeout=30)
        assert command.returncode == 0
    assert errors == ""
    assert not list((tmp_path / "targets").iterdir())
    assert foreign.poll() is None


def test_process_that_is_not_there(capsys):
    assert main(["attach", str(2**22 + 1)]) == 1
    assert capsys.readouterr().err == f"heapwatch: there is no process {2**22 + 1}\n"


@pytest.mark.parametrize(
    ("pid", "why"),
    [
        (-1, "process"),
        (0, "process"),
        (2**80, "process"),
        pytest.param(os.getpid(), "is heapwatch itself", id="own"),
    ],
)
def test_process_that_is_none(pid, why):
    with pytest.raises(CannotAttach, match=why):
        Attachment(pid, port=0)


def test_process_that_has_ended():
    with subprocess.Popen([sys.executable, "-c", ""]) as zombie:
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(CannotAttach, match="has ended"):
            Attachment(zombie.pid, port=0)


def test_process_of_somebody_else(foreign, monkeypatch):
    def denied(self):
        raise psutil.AccessDenied(self.pid)

    monkeypatch.setattr(psutil.Process, "memory_info", denied)
    with pytest.raises(CannotAttach, match="may not inspect process"):
        Attachment(foreign.pid, port=0)


def test_a_process_that_ends_while_it_is_looked_at_has_its_number_for_a_name():
    def ended():
        raise psutil.NoSuchProcess(7)

    assert name_of(SimpleNamespace(pid=7, name=ended, cmdline=ended)) == "7"
