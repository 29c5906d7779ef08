"""Scrapes share a collection; one that hangs or raises is reported and harms no other answer."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.exporters.http.trainer import status_of, wait_until


def test_many_concurrent_scrapes_are_all_answered(trainer):
    trainer.exposition.seconds = 0.005
    start = threading.Barrier(300)
    statuses = []

    def scrape():
        start.wait()
        statuses.append(status_of(trainer.raw(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")))

    threads = [threading.Thread(target=scrape) for _ in range(300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses.count(200) == 300
    assert trainer.exposition.collections < 300  # those who waited together shared one


def test_source_that_hangs_is_named_and_health_still_answers(impatient, trainer):
    trainer.exposition.hold.clear()
    with ThreadPoolExecutor() as pool:
        stuck = pool.submit(trainer.request, "GET", "/metrics")
        wait_until(lambda: trainer.exposition.collections == 1)
        response, body = trainer.request("GET", "/metrics")
        assert response.status == 503
        assert "a collector has been running" in json.loads(body)["error"]
        assert "a collector has been running" in json.loads(trainer.request("GET", "/healthz")[1])["detail"]
        assert b"a collector has been running" in trainer.request("GET", "/")[1]
        trainer.exposition.hold.set()
        assert stuck.result()[0].status == 200


def test_exposition_that_raises_answers_500_and_recovers(trainer, monkeypatch):
    def broken():
        raise ValueError("secret detail")

    with monkeypatch.context() as patch:
        patch.setattr(trainer.exposition, "collect", broken)
        response, body = trainer.request("GET", "/metrics")
        assert response.status == 500
        assert "ValueError" in json.loads(body)["error"]
        assert b"secret detail" not in body
    assert trainer.request("GET", "/metrics")[0].status == 200
