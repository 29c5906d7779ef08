"""What each endpoint answers, and to whom, also while a collection hangs."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from tests.support.served_trainer import GET_PATHS, status_of
from tests.support.waiting import wait_for


def test_metrics_as_text_and_as_openmetrics(shared):
    response, body = shared.request("GET", "/metrics")
    assert response.getheader("Content-Type").startswith("text/plain; version=0.0.4")
    assert {family.name for family in parse_text(body.decode())} >= {"trainer_process_resident_memory_bytes"}

    response, body = shared.request("GET", "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert response.getheader("Content-Type").startswith("application/openmetrics-text; version=1.0.0")
    assert [sample.value for family in parse_openmetrics(body.decode()) for sample in family.samples][1] == 42


def test_a_stalled_loop_is_not_ready_and_says_why_and_stays_alive(trainer):
    response, body = trainer.request("GET", "/readyz")
    assert (response.status, json.loads(body)["status"]) == (200, "ready")
    assert json.loads(trainer.request("GET", "/healthz")[1])["training"] == "progressing"
    trainer.exposition.progressed = time.time() - 3600
    response, body = trainer.request("GET", "/readyz")
    assert response.status == 503
    assert json.loads(body)["reason"] == "training has made no progress for 60 min"
    response, body = trainer.request("GET", "/healthz")
    assert (response.status, json.loads(body)["training"]) == (200, "stalled")


def test_landing_page_links_and_loads_nothing_from_elsewhere(trainer):
    response, body = trainer.request("GET", "/")
    page = body.decode()
    assert response.getheader("Content-Type") == "text/html; charset=utf-8"
    assert all(f'href="{path}"' in page for path in GET_PATHS[1:])
    assert "Training: progressing" in page
    assert "http" not in page


@pytest.mark.parametrize("path", GET_PATHS)
def test_head_has_the_headers_of_get_and_no_body(shared, path):
    answer = shared.raw(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status_of(answer) == 200
    assert body == b""
    assert b"Content-Length: 0" not in head


@pytest.mark.parametrize("method", ["POST", "BREW"])
@pytest.mark.parametrize("path", GET_PATHS)
def test_other_methods_are_answered_with_those_that_are_allowed(shared, path, method):
    response, _ = shared.request(method, path)
    assert response.status == 405
    assert response.getheader("Allow") == "GET, HEAD"


def test_unknown_path_names_the_known_ones(shared):
    response, body = shared.request("GET", "/metrics/")
    assert response.status == 404
    assert "/performance_status" in json.loads(body)["error"]


@pytest.mark.parametrize("path", [*GET_PATHS, "/force_cleanup"])
def test_rebound_host_is_refused_everywhere(shared, path):
    response, _ = shared.request("POST" if path == "/force_cleanup" else "GET", path, Host="evil.example")
    assert response.status == 421


def test_source_that_hangs_is_named_and_health_still_answers(impatient, trainer):
    trainer.exposition.hold.clear()
    with ThreadPoolExecutor() as pool:
        stuck = pool.submit(trainer.request, "GET", "/metrics")
        wait_for(lambda: trainer.exposition.collections == 1)
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
