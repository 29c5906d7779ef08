"""Another user of the machine: takes ports, passes requests on, leaves files where ours are."""

from __future__ import annotations

import os
import time

import pytest

from tests.support.alerting.harness import TOKEN, alert, wait_for
from tests.support.attacked_trainers import asked, impostor, printed, real_trainer
from tests.support.http_client import CLIENT
from tests.support.unreadable_files import UNREADABLE, others_file

pytestmark = pytest.mark.slow


def test_who_takes_a_dead_trainers_port_learns_no_secret_and_can_pass_nothing_on(scene, tmp_path):
    trainer = scene.trainer()
    trainer.stop()
    receiver = scene.receiver().start()
    with impostor(trainer.port) as server:
        wait_for(lambda: scene.prometheus.fires(trainer), "the process in its place is over its limit")
        receiver.post(alert(trainer.instance))
        (caught, *_) = wait_for(lambda: asked(server), "the receiver asks it to clean up")
        for request in asked(server):
            assert TOKEN not in str(request.headers)
            assert TOKEN.encode() not in request.body
    with real_trainer(tmp_path) as other:
        headers = dict(caught.headers)
        answer = CLIENT.post(other.url + caught.path, content=caught.body, headers=headers, timeout=30)
        assert answer.status_code == 421


def test_a_trainer_starts_whatever_lies_among_the_targets(tmp_path):
    targets = tmp_path / "targets"
    targets.mkdir()
    for number, make in enumerate(UNREADABLE.values()):
        make(targets / f"{number}.json")
    with real_trainer(tmp_path) as trainer:
        assert trainer.makes_progress()
        assert f"127.0.0.1:{trainer.port}" in printed(tmp_path, "top", "--once")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of another user")
def test_a_sweep_removes_nothing_of_others(tmp_path):
    targets = tmp_path / "targets"
    targets.mkdir()
    others = [targets / name for name in (".mydata.tmp", ".cache-0123abcd.tmp", "by-hand.json")]
    for path in others:
        path.write_text("{}")
    others.append(targets / "others.json")
    others_file(others[-1], [{"targets": ["127.0.0.1:1"], "labels": {"__meta_heapwatch_owner": "{}"}}])
    for path in others:
        os.utime(path, (time.time() - 7200,) * 2)
    with real_trainer(tmp_path) as trainer:
        assert trainer.makes_progress()
    assert all(path.exists() for path in others)
