"""Whether the kernel says that it ended a process."""

import os
import time
from pathlib import Path

import pytest

from heapwatch.measure.process import kernel_kills
from heapwatch.measure.process.kernel_kills import KernelKills

PID = os.getpid()


@pytest.fixture
def counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The counters of the control group and of the machine; no log that can be read."""
    group, machine = tmp_path / "memory.events", tmp_path / "vmstat"
    group.write_text("low 0\noom 4\noom_kill 3\noom_group_kill 0\n")
    machine.write_text("nr_free_pages 5\noom_kill 7\n")
    monkeypatch.setattr(kernel_kills, "_files_of", lambda pid: [group, machine] if pid == PID else [])
    monkeypatch.setattr(kernel_kills, "_LOG", tmp_path / "no log")
    return group, machine


def test_a_count_that_rose_since_the_last_update_is_the_cause(counters: tuple[Path, Path]) -> None:
    kills = KernelKills()
    kills.update([PID])
    assert kills.reason(PID) is None
    counters[0].write_text("oom_kill 4\n")
    assert kills.reason(PID) == "out of memory"
    kills.update([PID])
    assert kills.reason(PID) is None


def test_a_kill_in_another_control_group_is_not(counters: tuple[Path, Path]) -> None:
    kills = KernelKills()
    kills.update([PID])
    counters[1].write_text("oom_kill 8\n")
    assert kills.reason(PID) is None


def test_the_machine_counts_where_the_control_group_ended_with_its_process(
    counters: tuple[Path, Path],
) -> None:
    kills = KernelKills()
    kills.update([PID])
    counters[0].unlink()
    assert kills.reason(PID) is None
    counters[1].write_text("oom_kill 8\n")
    assert kills.reason(PID) == "out of memory"


def test_nothing_is_said_of_a_process_that_was_never_seen(counters: tuple[Path, Path]) -> None:
    counters[0].write_text("oom_kill 4\n")
    assert KernelKills().reason(PID) is None


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Memory cgroup out of memory: Killed process {pid} (python) total-vm:9kB", "out of memory"),
        ("python[{pid}]: segfault at 0 ip 00007f sp 00007f error 4", "segmentation fault"),
        ("Killed process {pid}1 (python)", None),
        ("usb 1-1: new device", None),
    ],
)
@pytest.mark.parametrize("seconds_ago", [5, 600])
def test_the_log_names_the_process(
    counters: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    message: str,
    reason: str | None,
    seconds_ago: float,
) -> None:
    log = tmp_path / "kmsg"
    log.write_text(f"6,1,{(time.monotonic() - seconds_ago) * 1e6:.0f},-;{message.format(pid=PID)}\n")
    monkeypatch.setattr(kernel_kills, "_LOG", log)
    assert KernelKills().reason(PID) == (reason if seconds_ago < 60 else None)


def test_the_files_of_this_process_can_be_found() -> None:
    assert kernel_kills._files_of(PID)[-1] == Path("/proc/vmstat")
    assert kernel_kills._files_of(2**22 + 1) == []


@pytest.mark.parametrize(
    ("groups", "file"),
    [
        ("0::/user.slice/run.scope\n", "/sys/fs/cgroup/user.slice/run.scope/memory.events.local"),
        ("9:cpu:/\n4:memory:/docker/a\n0::/\n", "/sys/fs/cgroup/memory/docker/a/memory.oom_control"),
    ],
)
def test_both_kinds_of_control_groups(monkeypatch: pytest.MonkeyPatch, groups: str, file: str) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: groups)
    assert kernel_kills._files_of(PID)[0] == Path(file)
