"""Real processes on free loopback ports: the receiver, trainers, Prometheus, Alertmanager."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.support.ports import free_port
from tests.support.waiting import wait_for

TOKEN = "a-token-for-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}

# Everything a person would wait minutes for, in tenths of seconds.
FAST = {
    "prometheus_warm_up": 8,
    "regular_cooldown": 60,
    "emergency_cooldown": 60,
    "check_after": 0.2,
    "check_deadline": 2,
    "retry_pause": 0.1,
    "trainer_timeout": 2,
    "trainer_deadline": 8,
    "stale_after": 30,
    "actions_per_hour": 10_000,
    "escalation": "nothing",
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


class Trainer:
    """A fake trainer over its limit; `done` lists the cleanups that it did, over all its lives."""

    def __init__(self, folder: Path, mode: str = "ok") -> None:
        self.folder = folder
        self.port = free_port()
        self.instance = f"127.0.0.1:{self.port}"
        self.set_mode(mode)
        self.start()

    def start(self) -> None:
        script = str(Path(__file__).with_name("fake_trainer.py"))
        command = [sys.executable, script, str(self.folder), TOKEN, str(self.port)]
        self.program = Program(command, self.folder / "trainer.log")
        wait_for(lambda: httpx.get(f"http://{self.instance}/metrics").status_code == 200, "trainer")

    def set_mode(self, mode: str) -> None:
        (self.folder / "mode").write_text(mode)

    @property
    def done(self) -> list[dict[str, Any]]:
        journal = self.folder / "journal"
        return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []

    def wait_until_done(self, what: str = "the cleanup", seconds: float = 60) -> None:
        wait_for(lambda: self.done, what, seconds)


class Receiver:
    """The receiver as it is run, on a database that outlives its process."""

    def __init__(self, folder: Path, prometheus_url: str, **settings: object) -> None:
        self.folder = folder
        self.database = folder / "receiver.sqlite3"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.settings = {**FAST, "prometheus_url": prometheus_url, "database": str(self.database), **settings}
        self.log = folder / "receiver.log"
        self._config = folder / "receiver.yml"

    def start(self, environment: Mapping[str, str] | None = None, *, wait: bool = True) -> Receiver:
        self._config.write_text(yaml.safe_dump(self.settings))
        shared = {"HEAPWATCH_TOKEN": TOKEN, "HEAPWATCH_RECEIVER_PORT": str(self.port)}
        command = [sys.executable, "-m", "heapwatch_receiver", "--config", str(self._config)]
        self.program = Program(command, self.log, {**shared, **(environment or {})})
        if wait:
            wait_for(self._up, "the receiver is up")
        return self

    def _up(self) -> bool:
        assert self.program.process.poll() is None, f"the receiver ended: {self.log.read_text()[-2000:]}"
        return self.get("/healthz").status_code == 200

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=10)

    def post(self, *alerts: Mapping[str, object]) -> httpx.Response:
        return httpx.post(f"{self.url}/alerts", json=notification(*alerts), headers=HEADERS, timeout=10)

    def rows(self, **filters: object) -> list[dict[str, Any]]:
        answer = httpx.get(f"{self.url}/actions", params={"limit": 500, **filters}, timeout=10)
        return list(answer.raise_for_status().json()["rows"])

    def decided(self, count: int, seconds: float = 60) -> list[dict[str, Any]]:
        """All rows, newest first, once there are so many and nothing waits or is being done."""

        def look() -> list[dict[str, Any]]:
            rows = self.rows()
            busy = any(
                row["decision"] == "waiting" or (row["action"] or {}).get("result", "") is None
                for row in rows
            )
            return rows if len(rows) >= count and not busy else []

        return wait_for(look, f"{count} rows decided", seconds)

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


def find(*names: str) -> str:
    """The path of the program with one of these names; tests that need it fail when it is absent."""
    path = next(filter(None, map(shutil.which, names)), None)
    assert path, f"{names[0]} is not on PATH: run `make up` once, or install it"
    return path


class Prometheus:
    """A real Prometheus that scrapes the trainers it is told of and fires TrainerMemoryHigh over 1 GB."""

    def __init__(self, folder: Path, alertmanagers: Sequence[str] = ()) -> None:
        self.folder = folder
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
            "global": {
                "scrape_interval": "1s",
                "scrape_timeout": "1s",
                "evaluation_interval": "300ms",
            },
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
        self.program = Program([find("prometheus"), *options], self.folder / "prometheus.log")
        wait_for(lambda: httpx.get(f"{self.url}/-/ready").status_code == 200, "Prometheus is ready")

    def watch(self, trainer: Trainer) -> None:
        """Scrape the trainer; returns when its alert fires."""
        (self.folder / "targets" / f"{trainer.port}.json").write_text(
            json.dumps([{"targets": [trainer.instance]}])
        )
        wait_for(lambda: self.fires(trainer), f"the alert of {trainer.instance} fires")

    def fires(self, trainer: Trainer) -> bool:
        alerts = httpx.get(f"{self.url}/api/v1/alerts").json()["data"]["alerts"]
        states = [one["state"] for one in alerts if one["labels"]["instance"] == trainer.instance]
        return states == ["firing"]


class Alertmanager:
    """A real Alertmanager that sends to a receiver, repeating as fast as it can."""

    def __init__(self, folder: Path, receiver_url: str) -> None:
        self.folder = folder
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
        self.start()

    def start(self) -> None:
        options = [f"--config.file={self.folder}/alertmanager.yml", f"--storage.path={self.folder}/data"]
        options += [f"--web.listen-address=127.0.0.1:{self.port}", "--cluster.listen-address="]
        self.program = Program(
            [find("alertmanager", "prometheus-alertmanager"), *options], self.folder / "alertmanager.log"
        )
        wait_for(lambda: httpx.get(f"{self.url}/-/ready").status_code == 200, "Alertmanager is ready")

    def push(self, *alerts: Mapping[str, Any]) -> None:
        now = datetime.now(timezone.utc).isoformat()
        posted = [{"labels": a["labels"], "annotations": a["annotations"], "startsAt": now} for a in alerts]
        httpx.post(f"{self.url}/api/v2/alerts", json=posted).raise_for_status()


@contextmanager
def stopping(*programs: Program) -> Iterator[None]:
    try:
        yield
    finally:
        for program in programs:
            program.stop()
