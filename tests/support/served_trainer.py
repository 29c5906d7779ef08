"""A real server of a trainer whose exposition and cleanups a test controls."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from heapwatch.explain.findings import Explanation
from heapwatch.http.endpoints import ServedTrainer
from heapwatch.http.server import serve
from heapwatch.http.status import Status
from heapwatch.runtime.cleanup import CleanupQueue
from heapwatch.runtime.exposition import Snapshots

HEALTHY = Explanation("healthy", 60.0, 0.0, 1.0)
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

    def __init__(self, token=TOKEN, *, local_cleanup=False):
        self.exposition = Exposition()
        self.queue = CleanupQueue(
            measure=lambda: {"resident_memory_bytes": 7},
            wake=lambda: None,
            seconds_since_safe_point=lambda: 12.5,
        )
        served = ServedTrainer(
            Snapshots(self.exposition),
            Status(lambda: HEALTHY, last_cleanup=lambda: self.queue.last),
            self.queue,
            lambda: {"verdict": "healthy"},
            lambda: token,
            local_cleanup,
        )
        self.server = serve("127.0.0.1", 0, served)

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


def status_of(answer):
    return int(answer.split(b" ", 2)[1])
