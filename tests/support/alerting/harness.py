"""Real processes on free loopback ports: the receiver, Prometheus, Alertmanager."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.support.alerting.fake_trainer import Trainer
from tests.support.http_client import CLIENT
from tests.support.ports import free_port
from tests.support.programs import find
from tests.support.waiting import wait_for

TOKEN = "a-token-for-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}

# The receiver's constants for tests: what a person would wait minutes for, in tenths of seconds.
FAST = {
    "CHECK_AFTER_SECONDS": 0.2,
    "CHECK_DEADLINE_SECONDS": 2,
    "RETRY_SECONDS": 0.1,
    "TIMEOUT_SECONDS": 2,
    "REQUEST_DEADLINE_SECONDS": 8,
    "STALE_SECONDS": 30,
}


class Program:
    """A process with a log file."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {})},
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM, then SIGKILL; a stopped process is woken first."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()


class Receiver:
    """The receiver as it is run, on a database that outlives its process.

    Names in capitals are constants of it, the others are settings.
    """

    def __init__(self, folder: Path, prometheus_url: str, **given: object) -> None:
        self.folder = folder
        self.database = folder / "receiver.sqlite3"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.constants = {**FAST, **{name: value for name, value in given.items() if name.isupper()}}
        self.settings = {"prometheus_url": prometheus_url, "database": str(self.database)}
        self.settings |= {"cooldown": 60, "actions_per_hour": 10_000}
        self.settings |= {name: value for name, value in given.items() if not name.isupper()}
        self.log = folder / "receiver.log"
        self._config = folder / "receiver.yml"
        self.program: Program | None = None

    def start(self, *, wait: bool = True) -> Receiver:
        self._config.write_text(yaml.safe_dump(self.settings))
        script = str(Path(__file__).with_name("fast_receiver.py"))
        command = [sys.executable, script, json.dumps(self.constants), "--config", str(self._config)]
        environment = {"HEAPWATCH_TOKEN": TOKEN, "HEAPWATCH_RECEIVER_PORT": str(self.port)}
        self.program = Program(command, self.log, environment)
        if wait:
            wait_for(self._up, "the receiver is up")
        return self

    def stop(self) -> None:
        if self.program:
            self.program.stop()

    def _up(self) -> bool:
        assert self.program.process.poll() is None, f"the receiver ended: {self.log.read_text()[-2000:]}"
        return self.get("/healthz").status_code == 200

    def get(self, path: str) -> httpx.Response:
        return CLIENT.get(self.url + path, timeout=10)

    def post(self, *alerts: Mapping[str, object]) -> httpx.Response:
        return CLIENT.post(f"{self.url}/alerts", json=notification(*alerts), headers=HEADERS)

    def page(self, **filters: object) -> dict[str, Any]:
        answer = CLIENT.get(f"{self.url}/actions", params={"limit": 500, **filters}, timeout=10)
        return dict(answer.raise_for_status().json())

    def rows(self, **filters: object) -> list[dict[str, Any]]:
        return list(self.page(**filters)["rows"])

    def all_rows(self) -> list[dict[str, Any]]:
        page = self.page()
        rows = page["rows"]
        while page["next"]:
            page = self.page(before=page["next"])
            rows += page["rows"]
        return list(rows)

    def settled(self) -> bool:
        """Whether nothing waits or is being done."""
        return not any(
            row["decision"] == "waiting" or (row["action"] and row["action"]["result"] is None)
            for row in self.rows()
        )

    def decided(self, count: int, seconds: float = 60) -> list[dict[str, Any]]:
        """All rows, newest first, once there are so many and nothing waits or is being done."""
        wait_for(lambda: len(self.rows()) >= count and self.settled(), f"{count} rows decided", seconds)
        return self.rows()

    def metric(self, name: str) -> float:
        """The value of a series, written as in the exposition; KeyError when it is absent."""
        for line in self.get("/metrics").text.splitlines():
            series, _, value = line.rpartition(" ")
            if series == name:
                return float(value)
        raise KeyError(name)


def alert(trainer: str, fingerprint: int = 1, **changes: object) -> dict[str, Any]:
    """An alert as Alertmanager sends it, that asks for a cleanup of the trainer at this instance."""
    labels = {
        "alertname": "TrainerMemoryHigh",
        "job": "trainer",
        "instance": trainer,
        "severity": "critical",
        "kind": "threshold",
        "resource": "memory",
        "component": "trainer",
        "action": "cleanup",
    }
    labels.update(changes.pop("labels", {}))  # type: ignore[arg-type]
    return {
        "status": "firing",
        "labels": labels,
        "annotations": {"summary": "memory is over its limit"},
        "startsAt": "2026-01-01T00:00:00.123456789Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://attacker.invalid/force_cleanup",
        "fingerprint": f"{fingerprint:016x}",
        **changes,
    }


def notification(*alerts: Mapping[str, object]) -> dict[str, object]:
    return {
        "version": "4",
        "groupKey": "{}:{}",
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "cleanup",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "http://127.0.0.1:9093",
        "alerts": list(alerts),
    }


class Prometheus:
    """A real Prometheus that scrapes the trainers it is told of and fires TrainerMemoryHigh over 1 GB."""

    def __init__(self, folder: Path, alertmanagers: Sequence[str] = (), options: Sequence[str] = ()) -> None:
        self.folder = folder
        self._options = list(options)
        (folder / "targets").mkdir(parents=True)
        rule = {
            "alert": "TrainerMemoryHigh",
            # as the shipped rules do: a scrape that a busy machine misses ends no alert
            "expr": "last_over_time(trainer_process_resident_memory_bytes[10s]) > 1e9",
            "labels": {
                key: alert("")["labels"][key]
                for key in ("severity", "kind", "resource", "component", "action")
            },
            "annotations": {"summary": "{{ $labels.instance }} is over its limit"},
        }
        (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "limits", "rules": [rule]}]}))
        discovery = [{"files": [str(folder / "targets/*.json")], "refresh_interval": "200ms"}]
        config = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "300ms"},
            "rule_files": [str(folder / "rules.yml")],
            "scrape_configs": [{"job_name": "trainer", "file_sd_configs": discovery}],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": list(alertmanagers)}]}]},
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        options = [f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data"]
        options += [f"--web.listen-address=127.0.0.1:{self.port}", "--rules.alert.resend-delay=1s"]
        options += self._options
        self.program = Program([find("prometheus"), *options], self.folder / "prometheus.log")
        wait_for(lambda: CLIENT.get(f"{self.url}/-/ready").status_code == 200, "Prometheus is ready")

    def stop(self) -> None:
        self.program.stop()

    def watch(self, *trainers: Trainer) -> None:
        """Scrape the trainers; returns when an alert fires for each."""
        for trainer in trainers:
            target = json.dumps([{"targets": [trainer.instance]}])
            (self.folder / "targets" / f"{trainer.port}.json").write_text(target)
        for trainer in trainers:
            wait_for(lambda trainer=trainer: self.fires(trainer), f"the alert of {trainer.instance} fires")

    def fires(self, trainer: Trainer) -> bool:
        alerts = CLIENT.get(f"{self.url}/api/v1/alerts").json()["data"]["alerts"]
        states = [one["state"] for one in alerts if one["labels"]["instance"] == trainer.instance]
        return states == ["firing"]


class Alertmanager:
    """A real Alertmanager that sends to a receiver, repeating as fast as it can."""

    def __init__(self, folder: Path, receiver_url: str) -> None:
        webhook = {"url": f"{receiver_url}/alerts", "http_config": {"authorization": {"credentials": TOKEN}}}
        route = {
            "receiver": "cleanup",
            "group_by": ["..."],
            "group_wait": "100ms",
            "group_interval": "1s",
            "repeat_interval": "1s",
        }
        config = {"route": route, "receivers": [{"name": "cleanup", "webhook_configs": [webhook]}]}
        (folder / "alertmanager.yml").write_text(yaml.safe_dump(config))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        options = [f"--config.file={folder}/alertmanager.yml", f"--storage.path={folder}/data"]
        options += [f"--web.listen-address=127.0.0.1:{self.port}", "--cluster.listen-address="]
        self.program = Program(
            [find("alertmanager", "prometheus-alertmanager"), *options], folder / "alertmanager.log"
        )
        wait_for(lambda: CLIENT.get(f"{self.url}/-/ready").status_code == 200, "Alertmanager is ready")

    def stop(self) -> None:
        self.program.stop()


@contextmanager
def stopping(*programs: Program) -> Iterator[None]:
    try:
        yield
    finally:
        for program in programs:
            program.stop()
