import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from heapwatch import discovery, lost
from heapwatch.discovery import LIFETIME_SECONDS, Owner, TargetFile, sweep
from heapwatch.measure.process.kernel_kills import KernelKills


@pytest.fixture
def target(tmp_path):
    """The target of this process."""
    target = TargetFile(tmp_path, "127.0.0.1", 7777, trainer="ppo")
    target.write()
    return target


def groups(path):
    return json.loads(path.read_text())


def causes(folder):
    return [one.cause for one in lost.read(folder / lost.FOLDER)]


def test_target_is_what_file_sd_reads(tmp_path):
    target = TargetFile(tmp_path / "new" / "targets", "127.0.0.1", 7777)
    target.write()
    (group,) = groups(target.path)
    assert group["targets"] == ["127.0.0.1:7777"]
    # Prometheus drops labels with this prefix, so none of them reaches a series.
    assert all(label.startswith("__meta_") for label in group["labels"])
    assert target.path.stat().st_mode & 0o777 == 0o644
    assert {folder.stat().st_mode & 0o777 for folder in (tmp_path / "new", target.path.parent)} == {0o700}
    target.remove()
    assert list(target.path.parent.iterdir()) == []
    target.remove()


@pytest.mark.parametrize(
    ("host", "address"), [("::1", "[::1]:80"), ("trainer", "trainer:80"), ("0.0.0.0", None), ("::", None)]
)
def test_address_can_be_scraped(tmp_path, host, address, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "node-7")
    discovery._machine.cache_clear()
    assert TargetFile(tmp_path, host, 80).address == (address or "node-7:80")
    discovery._machine.cache_clear()


def test_a_trainer_whose_address_another_takes_over_is_kept_as_lost(tmp_path):
    old = TargetFile(tmp_path, "127.0.0.1", 7777, trainer="ppo")
    new = TargetFile(tmp_path, "127.0.0.1", 7777)
    old._owner = replace(old._owner, started=1.0)
    old.write()
    new.write()
    old.remove()
    assert [path.name for path in tmp_path.glob("*.json")] == [new.path.name]
    new.write()
    new.remove()
    (kept,) = lost.read(tmp_path / lost.FOLDER)
    assert (kept.address, kept.trainer, kept.cause) == ("127.0.0.1:7777", "ppo", lost.UNKNOWN)


def test_a_trainer_that_ends_normally_is_not_kept_and_one_that_failed_is(tmp_path, target):
    target.remove()
    target.remove("ended by ValueError")
    assert causes(tmp_path) == []
    target.write()
    target.remove("ended by ValueError")
    assert not target.path.exists()
    assert causes(tmp_path) == ["ended by ValueError"]


@pytest.mark.parametrize(
    ("change", "is_killed", "cause"),
    [
        ({"started": 1.0}, False, lost.UNKNOWN),
        ({"started": 1.0}, True, lost.OUT_OF_MEMORY),
        ({"boot": "earlier"}, False, lost.REBOOTED),
    ],
)
def test_a_sweep_keeps_the_cause(tmp_path, target, monkeypatch, change, is_killed, cause):
    kills = KernelKills()
    monkeypatch.setattr(kills, "has_killed", lambda pid: is_killed)
    target.remove()
    target._owner = replace(target._owner, **change)
    target.write()
    sweep(tmp_path, kills)
    assert causes(tmp_path) == [cause]


TRAINER = """
import pathlib, sys, time
from heapwatch.discovery import TargetFile
TargetFile(pathlib.Path(sys.argv[1]), "127.0.0.1", 7777).write()
print("written", flush=True)
time.sleep(600)
"""


def test_target_of_a_killed_trainer_is_swept_and_no_other(tmp_path):
    mine = TargetFile(tmp_path, "127.0.0.1", 7778)
    mine.write()
    other = tmp_path / "by-hand.json"
    other.write_text('[{"targets": ["10.0.0.1:1"], "labels": {}}]')
    with subprocess.Popen([sys.executable, "-c", TRAINER, str(tmp_path)], stdout=subprocess.PIPE) as trainer:
        try:
            assert trainer.stdout.readline() == b"written\n"
            assert sweep(tmp_path) == []
        finally:
            trainer.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, trainer.pid, os.WEXITED | os.WNOWAIT)  # dead, and still a zombie
        (swept,) = sweep(tmp_path)
        assert "7777" in swept.name
    assert sorted(path.name for path in tmp_path.glob("*.json")) == sorted([mine.path.name, other.name])
    (killed,) = lost.read(tmp_path / lost.FOLDER)
    assert (killed.address, killed.cause) == ("127.0.0.1:7777", lost.UNKNOWN)


@pytest.mark.parametrize(
    ("change", "gone"),
    [
        ({}, False),
        ({"started": 1.0}, True),  # the pid was given to another process
        ({"pid": 2**22 + 1}, True),
        ({"boot": "earlier", "pid": 1}, True),
        ({"host": "elsewhere", "pid": 2**22 + 1}, False),
        ({"host": "elsewhere", "boot": "other"}, False),
        ({"pid_namespace": "pid:[1]", "pid": 2**22 + 1}, False),
    ],
)
def test_owner_is_gone_only_when_that_is_certain(change, gone):
    assert replace(Owner.current(), **change).is_gone() is gone


@pytest.mark.parametrize("name", ["odd.json", ".mydata.tmp", ".cache-0123abcd.tmp"])
@pytest.mark.parametrize("content", ["", "[", "{}", "[]", '[{"labels": {"__meta_heapwatch_owner": "[1]"}}]'])
def test_sweep_leaves_what_it_cannot_read(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    os.utime(tmp_path / name, (time.time() - 7200,) * 2)
    assert sweep(tmp_path) == []
    assert (tmp_path / name).exists()


@pytest.mark.usefixtures("target")
def test_the_addresses_of_trainers_that_may_live(tmp_path):
    dead = TargetFile(tmp_path, "127.0.0.1", 7778)
    dead._owner = replace(dead._owner, started=1.0)
    dead.write()
    assert discovery.addresses(tmp_path) == ["127.0.0.1:7777"]
    assert discovery.addresses(tmp_path, os.getpid()) == ["127.0.0.1:7777"]
    assert discovery.addresses(tmp_path, os.getppid()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of others")
def test_a_dead_target_of_another_user_stays(tmp_path, target):
    target._owner = replace(target._owner, started=1.0)
    target.write()
    os.chown(target.path, 61234, 61234)
    assert sweep(tmp_path) == []
    os.chown(target.path, 0, 0)
    assert sweep(tmp_path) == [target.path]


def foreign(path, address, **changes):
    """A target that a process of another container wrote."""
    target = TargetFile(path, address, 7777)
    target._owner = replace(target._owner, pid_namespace="pid:[1]", **changes)
    target.write()
    return target


def aged(target, seconds):
    then = time.time() - seconds
    os.utime(target.path, (then, then))


def test_a_target_of_another_container_expires_when_it_is_not_renewed(tmp_path):
    removed, alive = foreign(tmp_path, "removed"), foreign(tmp_path, "alive", host="elsewhere")
    aged(removed, LIFETIME_SECONDS + 60)
    aged(alive, LIFETIME_SECONDS - 60)
    assert sweep(tmp_path) == [removed.path]
    assert alive.path.exists()
    assert causes(tmp_path) == [lost.SILENT]
    assert sweep(tmp_path / "missing") == []
