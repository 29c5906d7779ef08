"""A collector that takes OTLP over HTTP, as far as the protocol goes: protobuf in, protobuf out."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)


class Collector:
    def __init__(self) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []
        self.status = 200
        self.asked = threading.Event()
        self.released = threading.Event()
        self.released.set()
        self.url = ""

    def metrics(self) -> dict[str, Any]:
        """The metrics of the newest batch, by name."""
        found = metrics_of(self.requests[-1])
        metrics = {metric.name: metric for metric in found}
        assert len(metrics) == len(found)
        return metrics

    def resource(self) -> dict[str, str]:
        (resource,) = self.requests[-1].resource_metrics
        return {one.key: one.value.string_value for one in resource.resource.attributes}


def metrics_of(request: ExportMetricsServiceRequest) -> list[Any]:
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    return list(scope.metrics)


@contextmanager
def collector() -> Iterator[Collector]:
    state = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.asked.set()
            assert self.path == "/v1/metrics"
            assert self.headers["Content-Type"] == "application/x-protobuf"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            state.released.wait(30)
            if state.status == 200:
                state.requests.append(ExportMetricsServiceRequest.FromString(body))
            answer = ExportMetricsServiceResponse().SerializeToString()
            self.send_response(state.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            state.released.set()
            server.shutdown()
