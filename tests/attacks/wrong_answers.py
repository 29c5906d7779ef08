"""A trainer that answers wrongly: to monitor and receiver, and by them to people's terminals and logs."""

from __future__ import annotations

import time

import httpx

from tests.alerting.harness import TOKEN, alert, wait_for
from tests.alerting.stage import Stage
from tests.attacks.programs import asked, printed, recording_trainer
from tests.attacks.record import Exchange, attack
from tests.exporters.cli.test_wrong_answers import ANSWERS, HEALTHY, WRONG
from tests.exporters.cli.wrong_answers import answering

CONTROLLING = "\x1b]0;owned\x07\x9b2J\u202e"


@attack("a trainer whose metrics and answers are of wrong types, next to a healthy one", quick=False)
def types(stage: Stage, exchange: Exchange) -> None:
    with answering({"/metrics": HEALTHY}) as healthy:
        for number, wrong in enumerate(WRONG):
            folder = stage.folder("monitor")
            with answering({"/metrics": wrong, "/force_cleanup": ANSWERS[number % len(ANSWERS)]}) as trainer:
                addresses = [one.url.removeprefix("http://") for one in (trainer, healthy)]
                command = ("monitor", "--auto-cleanup", "--interval", 0.2, "--count", 2, *addresses)
                _, output = printed(folder, *command)
            exchange.sent(wrong[:120].decode("latin-1"))
            exchange.back(output.strip().splitlines()[0])
            assert output.count("Memory=1.0MB") == 2, output
            assert "Traceback" not in output
            assert TOKEN not in output
            assert all(line.isprintable() for line in output.splitlines())


@attack("a trainer that sends its headers one byte at a time, next to a healthy one", quick=False)
def drip(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("monitor")
    with answering({}, drip=0.2) as trainer, answering({"/metrics": HEALTHY}) as healthy:
        addresses = [one.url.removeprefix("http://") for one in (trainer, healthy)]
        began = time.monotonic()
        exchange.sent("HTTP/1.1 200 OK, then a header byte every 0.2 s")
        _, output = printed(folder, "monitor", "--count", 1, *addresses)
        took = time.monotonic() - began
    exchange.back(f"after {took:.0f} s: {output.splitlines()[0]}")
    assert "does not answer within 5 s" in output
    assert "Memory=1.0MB" in output
    assert took < 15


@attack("an answer with 900 kB of text, control characters and 2,000 invented resources", quick=False)
def long_answer(stage: Stage, exchange: Exchange) -> None:
    trainer = stage.trainer()
    trainer.stop()
    receiver = stage.receiver().start()
    answer = {
        "status": "done",
        "errors": [CONTROLLING + "x" * 900_000],
        "removed": {f"{CONTROLLING}{number}": 1 for number in range(2000)},
        "freed": {"resident_memory_bytes": 1e308},
    }
    with recording_trainer(trainer.port, answer) as server:
        wait_for(lambda: stage.prometheus.fires(trainer), "the process in its place is over its limit")
        receiver.post(alert(trainer.instance))
        wait_for(lambda: asked(server), "the receiver asks")
        row = receiver.decided(1, 60)[0]
    exchange.sent("900 kB of errors, 2,000 resources, 1e308 bytes freed")
    exchange.back(f"detail of {len(row['action']['detail'])} characters, {row['action']['result']}")
    metrics = receiver.get("/metrics").text
    removed = [line for line in metrics.splitlines() if line.startswith("heapwatch_receiver_removed_total")]
    exchange.back(f"{len(removed)} series of removed things; log of {receiver.log.stat().st_size} bytes")
    assert len(row["action"]["detail"]) < 2500
    assert len(removed) <= 65
    assert receiver.log.stat().st_size < 100_000
    assert all(line.isprintable() for line in receiver.log.read_text().splitlines())


@attack("an alert that contains log lines, HTML and SQL", quick=False)
def alert_text(stage: Stage, exchange: Exchange) -> None:
    receiver = stage.receiver().start()
    malicious = "a:1\n2026-01-01 INFO helped\x1b[2J<script>alert(1)</script>' OR 1=1 --"
    receiver.post(alert(malicious, labels={"alertname": malicious}, annotations={"summary": malicious}))
    row = receiver.decided(1)[0]
    exchange.sent(f"instance {malicious!r}")
    page = receiver.get("/").text
    exchange.back(f"{row['decision']}: {row['reason']}; escaped in the page: {'<script>' not in page}")
    assert "<script>" not in page
    assert row["decision"] == "suppress"
    assert all(line.isprintable() for line in receiver.log.read_text().splitlines())
    answer = httpx.get(f"{receiver.url}/actions", params={"instance": "' OR 1=1 --"}, timeout=10)
    exchange.sent("GET /actions?instance=' OR 1=1 --")
    exchange.back(f"{answer.status_code}, {len(answer.json()['rows'])} rows")
    assert answer.json()["rows"] == []


@attack("an alert in the year 10000, and one before the year 1", quick=False)
def year_10000(stage: Stage, exchange: Exchange) -> None:
    receiver = stage.receiver().start()
    for when in ("9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00"):
        receiver.post(alert("a:1", startsAt=when, endsAt=when, status="resolved"))
        codes = [receiver.get(path).status_code for path in ("/", "/actions", "/metrics")]
        exchange.sent(f"startsAt {when}")
        exchange.back(f"/, /actions, /metrics: {codes}")
        assert codes == [200, 200, 200]
