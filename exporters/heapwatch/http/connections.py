"""A threading TCP server that slow or malicious clients cannot block."""

from __future__ import annotations

import logging
import os
import selectors
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from heapwatch.runtime.failures import raised

MAX_CONNECTIONS = 32  # more threads would answer no faster: they share the interpreter with training
REQUEST_SECONDS = 5.0  # a request must be complete by then, even if its bytes keep arriving
IDLE_SECONDS = 5.0  # between wake-ups while no connection is open
# Time for a complete request while new connections wait. Most requests arrive at once, and what has arrived
# is read even after the cut. 300 slow clients delay a scrape by about a second.
CROWDED_SECONDS = 0.1
STOP_SECONDS = 2.0  # for the accepting thread to end
logger = logging.getLogger("heapwatch")


class ConnectionServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """One accepting thread and at most MAX_CONNECTIONS short-lived ones, all of them daemons.

    A client whose request is not complete in time is cut off, sooner when others wait. A new connection gets
    503 only if all others are busy with a complete request.
    """

    daemon_threads = True
    timeout = 0  # of `handle_request`: the client may have gone
    allow_reuse_address = os.name == "posix"  # elsewhere it would share a port that is in use
    request_queue_size = 1024

    def __init__(
        self, address: tuple[str, int], handler: type[socketserver.BaseRequestHandler], busy_response: bytes
    ) -> None:
        self._busy_response = busy_response
        self._free = threading.Semaphore(MAX_CONNECTIONS)
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float | None] = {}  # accepted at; None once its request is complete
        self.on_tick: Callable[[], None] = lambda: None
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._waker, self._woken = socket.socketpair()
        super().__init__(address, handler)

    def serve_forever(self, poll_interval: float = 0.5) -> None:
        """Accept connections until `shutdown`.

        While no connection is open the thread sleeps: each wake-up interrupts the training loop.

        Args:
            poll_interval: seconds between checks of the open connections.

        """
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self.socket, selectors.EVENT_READ)
                selector.register(self._woken, selectors.EVENT_READ)
                while not self._stopping.is_set():
                    if selector.select(poll_interval if self._open else IDLE_SECONDS):
                        self.handle_request()
                    self.service_actions()
        finally:
            self._ended.set()

    def shutdown(self) -> None:
        """Stop accepting and wait for the end of `serve_forever`, which must run in another thread."""
        self._stopping.set()
        self._waker.send(b"x")
        self._ended.wait(STOP_SECONDS)

    def server_close(self) -> None:
        """Close the listening socket."""
        super().server_close()
        self._waker.close()
        self._woken.close()

    def request_complete(self, connection: socket.socket) -> None:
        """Exempt a connection from being cut off: its request is complete."""
        with self._lock:
            self._open[connection] = None

    def abandon(self) -> None:
        """Close this process's copies of the sockets, and nothing more: for the child after a fork."""
        for inherited in (self.socket, self._waker, self._woken, *self._open):
            with suppress(OSError):
                os.close(inherited.detach())

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection once there is room, in a thread of its own if one can be started."""
        if not self._free.acquire(timeout=CROWDED_SECONDS):
            self._cut_off(CROWDED_SECONDS)
            if not self._free.acquire(timeout=CROWDED_SECONDS):
                self._reject(request)
                return
        with self._lock:
            self._open[request] = time.monotonic()
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no more threads can be started
            self.process_request_thread(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)
            self._free.release()

    def service_actions(self) -> None:
        """Cut off overdue requests; called by the accepting thread a few times a second."""
        self._cut_off(REQUEST_SECONDS)
        self.on_tick()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a handler's error, unless the client disconnected."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            logger.warning("a request failed: %s", raised(error))

    def _cut_off(self, seconds: float) -> None:
        overdue = time.monotonic() - seconds
        with self._lock:
            for connection, accepted in self._open.items():
                if accepted is not None and accepted < overdue:
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_RD)

    def _reject(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.settimeout(0.1)
            connection.sendall(self._busy_response)
        self.shutdown_request(connection)
