"""A trainer with any answers, on a free loopback port: bytes for each path, dripped when asked to."""

import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def do_GET(self):
        self.server.seen.append((self.command, self.path, dict(self.headers)))
        answer = self.server.answers.get(self.path.partition("?")[0], b"")
        with suppress(OSError):
            if self.server.drip:
                for byte in b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000:
                    self.wfile.write(bytes([byte]))
                    time.sleep(self.server.drip)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    do_POST = do_GET

    def log_message(self, *_arguments):
        pass


@contextmanager
def answering(answers, drip=0.0):
    """Yields the server, which has `url` and the requests `seen`; `drip`: seconds between two bytes."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads, server.block_on_close = True, False
        server.answers, server.drip, server.seen = answers, drip, []
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
