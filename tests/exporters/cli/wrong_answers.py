"""A trainer with any answers, on a free loopback port: bytes for each path."""

import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def do_GET(self):
        self.server.seen.append((self.command, self.path, dict(self.headers)))
        with suppress(OSError):  # the client has gone
            self._answer(self.server.answers.get(self.path.partition("?")[0], b""))

    do_POST = do_GET

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
def answering(answers, redirect=""):
    """Yields the server: its `url`, and the requests `seen`.

    Args:
        answers: by path.
        redirect: where every answer sends to.

    """
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads, server.block_on_close = True, False
        server.answers, server.redirect, server.seen = answers, redirect, []
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
