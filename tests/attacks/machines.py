"""Disks that fill, files that are damaged, clocks that are set, and workers that are spawned."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.alerting.harness import TOKEN, alert, wait_for
from tests.alerting.stage import Stage
from tests.attacks.pages import silence
from tests.attacks.programs import own_places, real_trainer
from tests.attacks.record import Exchange, NotHere, attack


@attack("the disk of a trainer's record and targets fills", quick=False)
def full_disk(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("trainer")
    disk = folder / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if mount is None or subprocess.run(command, check=False, capture_output=True).returncode:
        raise NotHere("mounting a small disk needs root")
    try:
        with real_trainer(folder, f"watch.record({str(disk / 'run.jsonl')!r})") as trainer:
            (disk / "ballast").write_bytes(b"x" * 40_000)
            exchange.sent("a disk of 64 kB, 40 kB taken; the trainer records phases without end")
            filler = disk / "more"
            with filler.open("wb", buffering=0) as file:
                try:
                    while file.write(b"x" * 512):
                        pass
                except OSError as error:
                    exchange.back(error.strerror)
            assert trainer.makes_progress()
            exchange.back(f"training goes on, metrics: {httpx.get(trainer.url + '/metrics').status_code}")
    finally:
        subprocess.run(["umount", str(disk)], check=False)


@attack("the clocks of receiver and trainer are an hour apart, then set right", quick=False)
def clocks(stage: Stage, exchange: Exchange) -> None:
    receiver = stage.receiver().start()
    trainer = stage.trainer()
    from heapwatch.http import signing

    url, body = f"http://{trainer.instance}/force_cleanup", b'{"action": "regular", "request_id": "1"}'
    late = signing.authorization(TOKEN, "POST", url, body, clock=lambda: time.time() - 3600)
    answer = httpx.post(url, content=body, headers={"Authorization": late}, timeout=10)
    exchange.answered("a request signed by a clock an hour behind", answer, 401)
    receiver.post(alert(trainer.instance))
    row = receiver.decided(1)[0]
    exchange.sent("the same by a clock that is right")
    exchange.back(row["action"]["result"])
    assert row["action"]["result"] == "helped"


SPAWNING = """
    import multiprocessing

    def work():
        import heapwatch
        with heapwatch.start("worker", port=0) as inner:
            inner.step()

    if __name__ == "__main__":
        context = multiprocessing.get_context("fork")
        workers = [context.Process(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        watch.expected = [worker.exitcode for worker in workers]
"""


SPAWN = """
import json, multiprocessing, sys, time
import heapwatch

watch = heapwatch.start("spawning", port=0, interval=0.1)

def work(results):
    watch.step()
    results.put((watch.port, heapwatch.start("inner", port=0).port is not None))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=work, args=(results,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    said = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    for _ in range(100):
        watch.step()
    print(json.dumps({"port": watch.port, "said": said, "codes": [worker.exitcode for worker in workers]}))
"""


@attack("spawned workers that run the main script, and its heapwatch.start(), again")
def spawned(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("trainer")
    targets = folder / "targets"
    (folder / "spawning.py").write_text(SPAWN)
    done = subprocess.run(
        [sys.executable, str(folder / "spawning.py")],
        env=own_places(folder), text=True, capture_output=True, timeout=120,
    )  # fmt: skip
    exchange.sent("a script without a guard around heapwatch.start(), with two spawned workers")
    exchange.back(done.stdout.strip() or done.stderr.strip()[-300:])
    reported = json.loads(done.stdout)
    assert reported["codes"] == [0, 0]
    assert [port for port, _ in reported["said"]] == [None, None], "a worker's copy serves nothing by itself"
    assert not list(targets.glob("*.json")), "every target is removed at the end"


@attack("workers that are forked and start a watch of their own", quick=False)
def workers(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("trainer")
    with real_trainer(folder, SPAWNING) as trainer:
        exchange.sent("three forked workers, each with heapwatch.start() and an end")
        targets = [path.name for path in (folder / "targets").glob("*.json")]
        exchange.back(f"the trainer still serves {trainer.port}; targets: {targets}")
        assert trainer.makes_progress()
        assert targets == [path for path in targets if str(trainer.port) in path]
        assert targets


@attack("Prometheus's data damaged while it runs, and it is started again", quick=False)
def prometheus_data(stage: Stage, exchange: Exchange) -> None:
    prometheus = stage.own_prometheus()
    receiver = stage.receiver(prometheus_url=prometheus.url).start()
    trainer = stage.trainer(prometheus=prometheus)
    prometheus.program.process.send_signal(signal.SIGKILL)
    prometheus.program.process.wait()
    for file in Path(prometheus.folder, "data", "wal").glob("0*"):
        file.write_bytes(os.urandom(max(1, file.stat().st_size)))
    exchange.sent("random bytes instead of its write-ahead log, SIGKILL before")
    prometheus.start()
    wait_for(lambda: prometheus.fires(trainer), "the alert fires again", 60)
    receiver.post(alert(trainer.instance))
    row = receiver.decided(1, 60)[0]
    exchange.back(f"Prometheus starts, the alert fires again, the cleanup: {row['action']['result']}")
    assert row["action"]["result"] == "helped"


@attack("Alertmanager down for an hour (scaled: for 60 of its repeat intervals)", quick=False)
def alertmanager_down(stage: Stage, exchange: Exchange) -> None:
    receiver, alertmanager, prometheus = stage.whole_path()
    receiver.start()
    alertmanager.program.kill()
    trainer = stage.trainer(prometheus=prometheus)
    exchange.sent("SIGKILL to Alertmanager; an alert fires; 60 s later it is started again")
    time.sleep(60)
    assert not trainer.done
    alertmanager.start()
    began = time.monotonic()
    trainer.wait_until_done()
    exchange.back(f"the cleanup was done {time.monotonic() - began:.1f} s after Alertmanager came back, once")
    receiver.decided(1)
    assert len(trainer.done) == 1


@attack("an alert silenced in Alertmanager", quick=False)
def silenced(stage: Stage, exchange: Exchange) -> None:
    receiver, alertmanager, prometheus = stage.whole_path()
    receiver.start()
    answer = httpx.post(f"{alertmanager.url}/api/v2/silences", json=silence("TrainerMemoryHigh"), timeout=10)
    exchange.sent("a silence of TrainerMemoryHigh, then the alert")
    trainer = stage.trainer(prometheus=prometheus)
    time.sleep(5)
    exchange.back(f"silence: {answer.status_code}; cleanups: {len(trainer.done)}")
    assert not trainer.done
    identity = answer.json()["silenceID"]
    httpx.delete(f"{alertmanager.url}/api/v2/silence/{identity}", timeout=10)
    trainer.wait_until_done("the cleanup after the silence")
    exchange.sent("the silence is ended")
    exchange.back("the cleanup is done")


@attack("a trainer that comes back on another port")
def another_port(stage: Stage, exchange: Exchange) -> None:
    from heapwatch import discovery

    folder = stage.folder("trainer")
    with real_trainer(folder) as first:
        pass
    with real_trainer(folder) as second:
        found = discovery.addresses(folder / "targets")
        exchange.sent(f"a trainer killed on port {first.port}, started again on {second.port}")
        exchange.back(f"targets of live trainers: {found}")
        assert found == [f"127.0.0.1:{second.port}"]
        swept = sorted(path.name for path in (folder / "targets").glob("*.json"))
        exchange.back(f"files: {swept}")
        assert len(swept) == 1


@attack("supervisord and the process that restarts it, killed at the same moment", quick=False)
def watchdog_killed(stage: Stage, exchange: Exchange) -> None:
    from heapwatch_stack import processes
    from heapwatch_stack.services import Service
    from heapwatch_stack.settings import Endpoint, Settings
    from heapwatch_stack.supervision import Supervisor

    state = stage.folder("state")
    for name in ("etc", "logs", "run"):
        (state / name).mkdir()
    supervisor = Supervisor(Settings.from_environment({**os.environ, "HEAPWATCH_STATE": str(state)}))
    command = (sys.executable, "-c", "import time; time.sleep(3600)")
    supervisor.configure([Service(Endpoint("sleeper", 1, "PORT", "/"), command, {})])
    supervisor.start()
    try:
        wait_for(lambda: supervisor.processes()["watchdog"]["pid"], "the watchdog")
        killed = [supervisor.pid(), supervisor.processes()["watchdog"]["pid"]]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        exchange.sent("SIGKILL to supervisord and watchdog")
        wait_for(lambda: not supervisor.running(), "it is gone")
        left = [process.pid for process in processes.of_stack(state)]
        exchange.back(f"nobody restarts them: {len(left)} service runs on, unsupervised")
        assert left
        assert processes.end_all(state) == []
        supervisor.start()
        assert supervisor.running()
        exchange.sent("make up again")
        exchange.back("what was left is ended, the stack starts afresh")
    finally:
        supervisor.shut_down()
        processes.end_all(state)
