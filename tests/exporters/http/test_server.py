import errno
import gzip
import http.client
import json
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from heapwatch.http import connections, signing
from heapwatch.http.server import PortTaken, Server
from heapwatch.http.status import Status
from heapwatch.runtime.cleanup import CleanupQueue

TOKEN = "correct-horse"
GET_PATHS = ["/", "/metrics", "/performance_status", "/explain", "/healthz", "/readyz"]


class Exposition:
    """Yields two families; `hold` makes it hang like a bad source."""

    def __init__(self):
        self.collections = 0
        self.progressed = time.time()
        self.seconds = 0.0
        self.hold = threading.Event()
        self.hold.set()

    def collect(self):
        self.collections += 1
        self.hold.wait()
        time.sleep(self.seconds)
        memory = GaugeMetricFamily("trainer_process_resident_memory_bytes", "RSS.", labels=["role"])
        memory.add_metric(["trainer"], 7.5e8)
        yield memory
        steps = CounterMetricFamily("trainer_progress", "Progress.", labels=["unit"])
        steps.add_metric(["step"], 42)
        yield steps
        yield GaugeMetricFamily("trainer_last_progress_timestamp_seconds", "When.", value=self.progressed)


class Trainer:
    """A server with its exposition and a real cleanup queue that a test may run."""

    def __init__(self, **options):
        self.exposition = Exposition()
        self.queue = CleanupQueue(
            measure=lambda: {"resident_memory_bytes": 7},
            wake=lambda: None,
            seconds_since_safe_point=lambda: 12.5,
        )
        settings = {
            "exposition": self.exposition,
            "cleanup_queue": self.queue,
            "status": Status(last_cleanup=lambda: self.queue.last),
            "explain": lambda: {"verdict": "healthy"},
            "token": TOKEN,
        }
        self.server = Server("127.0.0.1", 0, **settings | options).start()

    def request(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        try:
            connection.request(
                method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
            )
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def cleanup(self, document=None, **headers):
        given = {"Authorization": f"Bearer {TOKEN}", "Content_Type": "application/json"} | headers
        response, body = self.request("POST", "/force_cleanup", json.dumps(document or {}), **given)
        return response, json.loads(body)

    def raw(self, data, *, half_close=False):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as connection:
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)


def read_all(connection):
    chunks = []
    while chunk := connection.recv(65536):
        chunks.append(chunk)
    return b"".join(chunks)


def drip(connection):
    for _ in range(200):
        connection.sendall(b"h")
        time.sleep(0.05)


def can_listen(port):
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # closed connections may linger there
        free.bind(("127.0.0.1", port))
        free.listen()
        return True


def status_of(answer):
    return int(answer.split(b" ", 2)[1])


def wait_until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def shared():
    """A trainer for the tests that change nothing about it."""
    running = Trainer()
    yield running
    running.server.stop()


@pytest.fixture
def trainer():
    running = Trainer()
    yield running
    running.exposition.hold.set()
    running.server.stop()


@pytest.fixture
def impatient(monkeypatch):
    """Time limits short enough to wait for."""
    from heapwatch.http import endpoints

    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    monkeypatch.setattr(endpoints.Endpoints, "timeout", 0.5)
    monkeypatch.setattr(connections, "CROWDED_SECONDS", 0.2)
    monkeypatch.setattr(endpoints, "COLLECTION_SECONDS", 0.2)
    monkeypatch.setattr(endpoints, "HEALTH_SECONDS", 0.2)


def test_metrics_as_text_and_as_openmetrics(shared):
    response, body = shared.request("GET", "/metrics")
    assert response.getheader("Content-Type").startswith("text/plain; version=0.0.4")
    assert {family.name for family in parse_text(body.decode())} >= {"trainer_process_resident_memory_bytes"}

    response, body = shared.request("GET", "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert response.getheader("Content-Type").startswith("application/openmetrics-text; version=1.0.0")
    assert [sample.value for family in parse_openmetrics(body.decode()) for sample in family.samples][1] == 42


def test_metrics_are_compressed_for_those_who_accept_it(shared):
    plain = shared.request("GET", "/metrics")[1]
    response, body = shared.request("GET", "/metrics", Accept_Encoding="gzip")
    assert response.getheader("Content-Encoding") == "gzip"
    assert gzip.decompress(body) == plain


def test_performance_status_has_the_documented_shape(shared):
    document = json.loads(shared.request("GET", "/performance_status")[1])
    assert document["performance"]["memory_mb"] == 750
    assert document["performance"]["step_count"] == 42
    assert "entities" not in document  # nothing watches bodies here, and nothing invents a zero


def test_a_stalled_loop_is_not_ready_and_says_why_and_stays_alive(trainer):
    response, body = trainer.request("GET", "/readyz")
    assert (response.status, json.loads(body)["status"]) == (200, "ready")
    trainer.exposition.progressed = time.time() - 3600
    response, body = trainer.request("GET", "/readyz")
    assert response.status == 503
    assert json.loads(body)["reason"] == "training has made no progress for 3600 s"
    assert trainer.request("GET", "/healthz")[0].status == 200


def test_health_tells_progress(trainer):
    assert json.loads(trainer.request("GET", "/healthz")[1])["training"] == "progressing"
    trainer.exposition.progressed = time.time() - 3600
    assert json.loads(trainer.request("GET", "/healthz")[1])["training"] == "stalled"


def test_what_grows_is_answered_where_it_can_be_looked_into(trainer):
    answer, body = trainer.request("GET", "/explain")
    assert answer.status == 200
    assert json.loads(body) == {"verdict": "healthy"}


def test_landing_page_links_and_loads_nothing_from_elsewhere(trainer):
    response, body = trainer.request("GET", "/")
    page = body.decode()
    assert response.getheader("Content-Type") == "text/html; charset=utf-8"
    assert all(f'href="{path}"' in page for path in GET_PATHS[1:])
    assert "Training progresses" in page
    assert "http" not in page.replace('http-equiv="refresh"', "")


@pytest.mark.parametrize("path", GET_PATHS)
def test_head_has_the_headers_of_get_and_no_body(shared, path):
    answer = shared.raw(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status_of(answer) == 200
    assert body == b""
    assert b"Content-Length: 0" not in head


@pytest.mark.parametrize("path", GET_PATHS)
def test_http_1_0_is_answered(shared, path):
    assert status_of(shared.raw(f"GET {path} HTTP/1.0\r\n\r\n".encode())) == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "BREW"])
@pytest.mark.parametrize("path", GET_PATHS)
def test_other_methods_are_told_which_are_allowed(shared, path, method):
    response, _ = shared.request(method, path)
    assert response.status == 405
    assert response.getheader("Allow") == "GET, HEAD"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_cleanup_is_post_only(shared, method):
    response, _ = shared.request(method, "/force_cleanup", Authorization=f"Bearer {TOKEN}")
    assert (response.status, response.getheader("Allow")) == (405, "POST")


def test_unknown_path_names_the_known_ones(shared):
    response, body = shared.request("GET", "/metrics/")
    assert response.status == 404
    assert "/performance_status" in json.loads(body)["error"]


@pytest.mark.parametrize("path", [*GET_PATHS, "/force_cleanup"])
def test_rebound_host_is_refused_everywhere(shared, path):
    response, _ = shared.request("POST" if path == "/force_cleanup" else "GET", path, Host="evil.example")
    assert response.status == 403


def test_cleanup_runs_at_the_safe_point_and_answers_what_it_did(trainer):
    trainer.queue.register(lambda action: {"bodies": 3})
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(trainer.cleanup, {"action": "regular", "reason": "a test", "request_id": "one"})
        wait_until(trainer.queue.pending)
        trainer.queue.run_pending()
        response, document = answer.result()
    assert response.status == 200
    assert document["status"] == "done"
    assert document["removed"] == {"bodies": 3}
    assert (document["action"], document["reason"], document["trigger"]) == ("regular", "a test", "http")
    again, repeated = trainer.cleanup({"action": "regular", "request_id": "one"})
    assert (again.status, repeated) == (200, document)
    status = json.loads(trainer.request("GET", "/performance_status")[1])
    assert status["last_cleanup"]["request_id"] == "one"


def test_cleanup_without_a_safe_point_is_pending(trainer):
    response, document = trainer.cleanup({"timeout_seconds": 0, "request_id": "one"})
    assert response.status == 202
    assert document["status"] == "pending"
    assert document["seconds_since_safe_point"] == 12.5
    trainer.cleanup({"timeout_seconds": 0, "request_id": "one"})
    assert trainer.queue.pending() == 1


def test_cleanup_needs_no_body(trainer):
    answer = trainer.raw(
        f"POST /force_cleanup HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Length: 27\r\nContent-Type: application/json\r\n\r\n".encode()
        + b'{"timeout_seconds": 0.0001}'
    )
    assert status_of(answer) == 202
    trainer.queue.run_pending()


def test_cleanup_guards(trainer):
    def code(**headers):
        return trainer.cleanup({"timeout_seconds": 0}, **headers)[0].status

    assert code(Authorization="Bearer wrong") == 401
    assert code(Origin="http://evil.example") == 403
    assert code(Sec_Fetch_Site="cross-site") == 403
    assert code(Content_Type="text/plain") == 415
    assert trainer.cleanup({"action": "reboot"})[0].status == 400
    assert trainer.cleanup({"reason": "x" * 20_000})[0].status == 413
    assert trainer.queue.pending() == 0


def signed(trainer, path="/force_cleanup", body=b"{}", **changes):
    url = f"http://127.0.0.1:{changes.get('port', trainer.server.port)}{path}"
    return signing.authorization(changes.get("secret", TOKEN), "POST", url, body, **changes.get("clock", {}))


def test_a_signed_cleanup_is_obeyed_once(trainer):
    body = b'{"timeout_seconds": 0}'
    header = signed(trainer, body=body)

    def code(body):
        given = {"Authorization": header, "Content-Type": "application/json"}
        return trainer.request("POST", "/force_cleanup", body, **given)[0].status

    assert code(b'{"timeout_seconds": 1}') == 401
    assert code(body) == 202
    assert code(body) == 401
    assert trainer.queue.pending() == 1


@pytest.mark.parametrize(
    ("changes", "status", "told"),
    [
        ({"secret": "guessed"}, 401, "another token"),
        ({"path": "/metrics"}, 401, "does not match this request"),
        ({"clock": {"clock": lambda: time.time() - 3600}}, 401, "s before this trainer's time"),
        ({"clock": {"clock": lambda: time.time() - 5}}, 401, "sign the request anew"),
        ({"port": 1}, 401, "does not match this request"),
    ],
)
def test_a_signature_that_does_not_hold_is_told_why(trainer, changes, status, told):
    given = {"Authorization": signed(trainer, **changes), "Content-Type": "application/json"}
    response, answer = trainer.request("POST", "/force_cleanup", b"{}", **given)
    assert response.status == status
    assert told in json.loads(answer)["error"]
    assert trainer.queue.pending() == 0


def test_a_signature_passed_on_by_an_impostor_on_another_port_is_refused(trainer):
    given = {
        "Host": "127.0.0.1:1",
        "Authorization": signed(trainer, port=1),
        "Content-Type": "application/json",
    }
    response, answer = trainer.request("POST", "/force_cleanup", b"{}", **given)
    assert response.status == 421
    assert "not this trainer" in json.loads(answer)["error"]


def test_cleanup_is_refused_when_no_token_is_configured():
    running = Trainer(token=None)
    try:
        response, document = running.cleanup()
        assert response.status == 403
        assert "HEAPWATCH_TOKEN" in document["error"]
    finally:
        running.server.stop()


def test_too_many_cleanups_are_told_when_to_come_back(trainer):
    codes = [trainer.cleanup({"timeout_seconds": 0, "request_id": "one"})[0] for _ in range(15)]
    assert codes[0].status == 202
    assert codes[-1].status == 429
    assert int(codes[-1].getheader("Retry-After")) >= 1
    # Those without the token cannot use the allowance up, nor learn of it.
    assert trainer.cleanup(Authorization="Bearer wrong")[0].status == 401


def test_waiting_cleanups_leave_connections_to_the_scrapes(trainer):
    with ThreadPoolExecutor(20) as pool:
        waiting = [
            pool.submit(trainer.cleanup, {"request_id": "one", "timeout_seconds": 30}) for _ in range(10)
        ]
        # Two more than may wait: these are told at once that it is pending.
        wait_until(lambda: sum(answer.done() for answer in waiting) == 2)
        assert {answer.result()[0].status for answer in waiting if answer.done()} == {202}
        trainer.queue.run_pending()
        assert sorted(answer.result()[0].status for answer in waiting) == [200] * 8 + [202] * 2


def test_token_appears_in_no_log(trainer, caplog, capfd):
    caplog.set_level("DEBUG")
    trainer.cleanup({"timeout_seconds": 0})
    trainer.cleanup({"timeout_seconds": 0}, Authorization="Bearer wr0ng-token")
    trainer.raw(f"POST /force_cleanup?token={TOKEN} HTTP/1.1\r\nHost: a b\r\n\r\n".encode())
    logged = caplog.text + "".join(capfd.readouterr())
    assert TOKEN not in logged
    assert "wr0ng-token" not in logged


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\x00\xff\xfe\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET /metrics HTTP/9.9\r\n\r\n", 505),
        (b"GET /metrics HTTP/one\r\n\r\n", 400),
        (b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),  # a TLS client
    ],
)
def test_garbage_gets_an_error_and_the_next_request_an_answer(shared, request_bytes, status):
    answer = shared.raw(request_bytes)
    assert status_of(answer) == status
    assert "error" in json.loads(answer.partition(b"\r\n\r\n")[2])
    assert shared.request("GET", "/healthz")[0].status == 200


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ("Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 411),
        ("Content-Length: -5\r\n\r\n{}", 400),
        ("Content-Length: 99999999999999999999\r\n\r\n{}", 413),
        ("Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    ],
)
def test_bodies_without_an_honest_length_are_refused(trainer, fields, status):
    head = f"POST /force_cleanup HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    assert status_of(trainer.raw((head + fields).encode())) == status
    assert trainer.queue.pending() == 0


@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(
    st.binary(max_size=2000)
    | st.builds(
        lambda method, path, version, fields: f"{method} {path} {version}\r\n{fields}\r\n".encode(),
        st.sampled_from(["GET", "HEAD", "POST", "get", "", "\t"]),
        st.sampled_from([*GET_PATHS, "/force_cleanup", "//", "*", "http://localhost/metrics", "/%00"])
        | st.text(),
        st.sampled_from(["HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/1.1.1", ""]),
        st.lists(
            st.tuples(
                st.sampled_from(
                    ["Host", "Content-Length", "Transfer-Encoding", "Expect", "Connection", "Accept"]
                )
                | st.text(max_size=10),
                st.sampled_from(["localhost", "100-continue", "chunked", "-1", "5", "keep-alive", "*/*;q=x"])
                | st.text(max_size=10),
            ),
            max_size=5,
        ).map(lambda pairs: "".join(f"{name}: {value}\r\n" for name, value in pairs)),
    )
)
def test_any_bytes_get_at_most_one_answer_and_never_a_cleanup(shared, data):
    answer = shared.raw(data, half_close=True)
    final = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert final == b"" or 200 <= status_of(final) < 506
    assert not final.startswith(b"HTTP/1.1 500")
    assert shared.queue.pending() == 0
    assert shared.request("GET", "/healthz")[0].status == 200


def test_request_that_ends_before_its_headers_do_does_nothing(trainer):
    head = f"POST /force_cleanup HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    for cut in (
        head,
        head + "Content-Le",
        head + "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{}",
    ):
        assert status_of(trainer.raw(cut.encode(), half_close=True)) == 408
    assert trainer.queue.pending() == 0


def test_pipelined_requests_get_one_answer_and_a_close(shared):
    answer = shared.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
    assert answer.count(b"HTTP/1.1") == 1
    assert b"Connection: close" in answer


@pytest.mark.parametrize("path", [*GET_PATHS, "/force_cleanup"])
def test_slow_loris_is_cut_off_and_delays_nobody(impatient, trainer, path):
    method = "POST" if path == "/force_cleanup" else "GET"
    crowd = [
        socket.create_connection(("127.0.0.1", trainer.server.port), timeout=20)
        for _ in range(connections.MAX_CONNECTIONS + 16)
    ]
    try:
        for client in crowd:
            client.sendall(f"{method} {path} HTTP/1.1\r\nHost: local".encode())
        response, _ = trainer.request("GET", "/metrics")
        assert response.status == 200
        dripping = crowd[0]
        with pytest.raises(OSError, match=r"reset|[Bb]roken"):
            drip(dripping)
        assert trainer.queue.pending() == 0
    finally:
        for client in crowd:
            client.close()


def test_silent_client_is_told_that_its_time_is_up(impatient, trainer):
    with socket.create_connection(("127.0.0.1", trainer.server.port), timeout=20) as client:
        assert status_of(read_all(client)) == 408


def test_slow_body_is_cut_off(impatient, trainer):
    head = (
        f"POST /force_cleanup HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    )
    assert status_of(trainer.raw(head.encode())) == 408


def test_client_that_never_reads_delays_nobody(shared):
    with socket.create_connection(("127.0.0.1", shared.server.port)) as deaf:
        deaf.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert shared.request("GET", "/metrics")[0].status == 200


def test_a_thousand_concurrent_scrapes_are_all_answered(trainer):
    trainer.exposition.seconds = 0.005
    start = threading.Barrier(1000)
    statuses = []

    def scrape():
        start.wait()
        statuses.append(status_of(trainer.raw(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")))

    threads = [threading.Thread(target=scrape) for _ in range(1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses.count(200) == 1000
    assert trainer.exposition.collections < 1000  # those who waited together shared one


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


def test_stop_frees_the_port_and_start_serves_again(trainer):
    port = trainer.server.port
    trainer.server.stop()
    trainer.server.stop()
    assert can_listen(port)
    trainer.server.start()
    assert trainer.server.port == port
    assert trainer.request("GET", "/healthz")[0].status == 200


def test_levels_are_observed_although_nobody_asks(monkeypatch, trainer):
    from heapwatch.http import server

    monkeypatch.setattr(server, "OBSERVATION_SECONDS", 0.05)
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.05)
    trainer.request("GET", "/healthz")  # the thread that sleeps for longer looks up
    wait_until(lambda: trainer.exposition.collections >= 3)
    trainer.exposition.hold.clear()  # a source that hangs keeps the observer, not the server
    collections = trainer.exposition.collections
    wait_until(lambda: trainer.exposition.collections > collections)
    assert trainer.request("GET", "/nothing")[0].status == 404


def test_while_nobody_asks_the_thread_sleeps_and_yet_stops_at_once(trainer):
    looks = []
    trainer.server._listener.service_actions = lambda: looks.append(time.monotonic())
    time.sleep(2)
    assert len(looks) <= 1
    began = time.monotonic()
    trainer.server.stop()
    assert time.monotonic() - began < 1


def test_no_thread_outlives_stop():
    before = set(threading.enumerate())
    running = Trainer()
    running.request("GET", "/metrics")
    running.server.stop()
    wait_until(lambda: set(threading.enumerate()) <= before)


def test_taken_port_names_its_owner(trainer):
    with pytest.raises(
        PortTaken, match=rf"port {trainer.server.port} .* pid {os.getpid()} \(.*port_search"
    ) as caught:
        Trainer_at(trainer.server.port)
    assert caught.value.errno == errno.EADDRINUSE


def test_port_search_moves_to_the_next_free_one(trainer):
    moved = Trainer_at(trainer.server.port, port_search=True)
    try:
        assert trainer.server.port < moved.port <= trainer.server.port + 100
    finally:
        moved.stop()


def test_any_free_port_where_the_next_hundred_are_taken_too(monkeypatch, trainer):
    monkeypatch.setattr("heapwatch.http.server._PORTS_SEARCHED", 0)
    moved = Trainer_at(trainer.server.port, port_search=True)
    try:
        assert moved.port not in (0, trainer.server.port)
    finally:
        moved.stop()


@pytest.mark.parametrize("port", [-1, 65536])
def test_port_that_is_none(port):
    with pytest.raises(ValueError, match="65535"):
        Trainer_at(port)


def test_host_that_is_not_ours_is_named():
    with pytest.raises(OSError, match=r"192\.0\.2\.1"):
        Server(
            "192.0.2.1", 0, exposition=Exposition(), cleanup_queue=None, status=Status(), token=None
        ).start()


def Trainer_at(port, **options):
    return Server(
        "127.0.0.1",
        port,
        exposition=Exposition(),
        cleanup_queue=None,
        status=Status(),
        token=None,
        **options,
    ).start()


def test_forked_child_neither_serves_nor_holds_the_port(trainer):
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        trainer.server.stop()  # must return at once: its thread does not exist here
        os.write(ready[1], b"x")
        os.close(go[1])
        os.read(go[0], 1)
        os._exit(0)
    try:
        assert os.read(ready[0], 1) == b"x"
        assert trainer.request("GET", "/healthz")[0].status == 200
        trainer.server.stop()
        assert can_listen(trainer.server.port)  # the child lives on, without the listening socket
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for descriptor in ready + go:
            os.close(descriptor)
