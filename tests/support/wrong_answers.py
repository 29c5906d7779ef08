"""A trainer with any answers, on a free loopback port: bytes for each path, dripped when asked to."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def do_GET(self):
        self.server.seen.append((self.command, self.path, dict(self.headers)))
        try:
            if self.server.drip:
                self._drip()
            self._answer(self.server.answers.get(self.path.partition("?")[0], b""))
        except OSError:
            self.server.cut.set()

    do_POST = do_GET

    def _drip(self):
        for byte in self.server.head + b"X: y\r\n" * 100_000:
            self.wfile.write(bytes([byte]))
            if self.server.cut.wait(self.server.drip):
                return

    def _answer(self, answer):
        self.send_response(302 if self.server.redirect else 200)
        if self.server.redirect:
            self.send_header("Location", self.server.redirect)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_arguments):
        pass


@contextmanager
def answering(answers, drip=0.0, head=b"HTTP/1.1 200 OK\r\n", redirect=""):
    """Yields the server: its `url`, the requests `seen`, and `cut` once a client has gone.

    Args:
        answers: by path.
        drip: seconds between two bytes; they are fields of a header, after this `head`, or else of a body.
        head: see there.
        redirect: where every answer sends to.

    """
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads, server.block_on_close = True, False
        server.answers, server.drip, server.head, server.redirect = answers, drip, head, redirect
        server.seen, server.cut = [], threading.Event()
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            server.cut.set()
            server.shutdown()
