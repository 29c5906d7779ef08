"""The standard library's threading server, with a bound on its connections."""

from __future__ import annotations

import logging
import os
import selectors
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from typing import Any

from heapwatch.runtime.failures import raised

MAX_CONNECTIONS = 32  # more threads would answer no faster: they share the interpreter with training
ROOM_SECONDS = 1.0  # that a new connection waits while all others are open
TICK_SECONDS = 5.0  # each wake-up interrupts the training loop
STOP_SECONDS = 2.0  # for the accepting thread to end
logger = logging.getLogger("heapwatch")


class ConnectionServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """One accepting thread and at most MAX_CONNECTIONS short-lived ones, all of them daemons.

    When all are in use, a new connection waits for a moment and is then closed.
    """

    daemon_threads = True
    timeout = 0  # of `handle_request`: the client may have gone
    allow_reuse_address = os.name == "posix"  # elsewhere it would share a port that is in use
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], handler: type[socketserver.BaseRequestHandler]) -> None:
        self._free = threading.Semaphore(MAX_CONNECTIONS)
        self.on_tick: Callable[[], None] = lambda: None
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._waker, self._woken = socket.socketpair()
        super().__init__(address, handler)

    def serve(self) -> None:
        """Accept connections until `stop`; call `on_tick` after each, and every TICK_SECONDS."""
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self.socket, selectors.EVENT_READ)
                selector.register(self._woken, selectors.EVENT_READ)
                while not self._stopping.is_set():
                    if selector.select(TICK_SECONDS):
                        self.handle_request()
                    self.on_tick()
        finally:
            self._ended.set()

    def stop(self) -> None:
        """Stop accepting and wait for the end of `serve`, which must run in another thread."""
        self._stopping.set()
        self._waker.send(b"x")
        self._ended.wait(STOP_SECONDS)

    def server_close(self) -> None:
        """Close this process's copies of the server's sockets."""
        super().server_close()
        self._waker.close()
        self._woken.close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection once there is room, in a thread of its own if one can be started."""
        if not self._free.acquire(timeout=ROOM_SECONDS):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no more threads can be started
            self.process_request_thread(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a handler's error, unless the client disconnected."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            logger.warning("a request failed: %s", raised(error))
