"""The HTTP server of a trainer or of a node: the standard library's, with a limit on connections.

Each connection has a thread, so a slow client delays no other. The process needs neither an event loop nor a
web framework.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import selectors
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from heapwatch.http.addresses import allowed_hosts, known_names
from heapwatch.http.endpoints import Endpoints, ServedTrainer
from heapwatch.measure.gpu import allow_capture
from heapwatch.runtime.exposition import CollectionStuck
from heapwatch.runtime.failures import raised

DEFAULT_PORT = 7777
OBSERVATION_SECONDS = 15.0  # growth rates need samples even when nobody scrapes
MAX_CONNECTIONS = 32  # more would not answer faster: their threads share the interpreter's lock
ROOM_SECONDS = 1.0  # longest wait of a new connection for a free thread
STOP_SECONDS = 2.0  # longest wait for the accepting thread to end
_PORTS_SEARCHED = 100

logger = logging.getLogger("heapwatch")


class PortTaken(OSError):
    """The port is taken."""


def serve(host: str, port: int, trainer: ServedTrainer, *, port_search: bool = False) -> Server:
    """Listen, and serve from a daemon thread; the server's `port` is the one in use.

    Args:
        host: the address to listen on.
        port: 0 takes any free one.
        trainer: the data to serve.
        port_search: move to the next free port if this one is taken, or to any if the next hundred are.

    Raises:
        PortTaken: the port belongs to another process.
        OSError: the host is not an address of this machine, or the port is not permitted.
        RuntimeError: no further thread can be started.
        ValueError: the port is not from 0 to 65535.

    """
    if not 0 <= port <= 65535:
        raise ValueError(f"port {port} is out of range; allowed: 0 (any free one) to 65535")
    ports = [port]
    if port_search:
        ports = [*range(port, min(65535, port + _PORTS_SEARCHED) + 1), 0]
    for candidate in ports:
        try:
            server = Server(host, candidate, trainer)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                message = f"cannot listen on {host}:{candidate}: {error.strerror}"
                raise OSError(error.errno, message) from None
        else:
            server.start()
            return server
    raise PortTaken(
        errno.EADDRINUSE, f"port {port} on {host} is taken; choose another port, or 0 for any free one"
    )


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """One accepting thread and at most MAX_CONNECTIONS short-lived ones, all of them daemons.

    When all are in use, a new connection waits for a moment and is then closed.

    Attributes:
        on_observe: functions that the observing thread calls every OBSERVATION_SECONDS.

    """

    daemon_threads = True
    timeout = 0  # of `handle_request`: the client may have gone
    allow_reuse_address = os.name == "posix"  # elsewhere it would share a port that is in use
    request_queue_size = 1024

    def __init__(self, host: str, port: int, trainer: ServedTrainer) -> None:
        self.host = host
        self.trainer = trainer
        self.on_observe: list[Callable[[], object]] = []
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._free = threading.Semaphore(MAX_CONNECTIONS)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._accept, name="heapwatch-server", daemon=True)
        self._waker, self._woken = socket.socketpair()
        super().__init__(
            (host, port), functools.partial(Endpoints, trainer, known_names(host), allowed_hosts())
        )

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the landing page."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/"

    def start(self) -> None:
        """Start the threads that accept connections and that observe levels.

        Raises:
            RuntimeError: no further thread can be started.

        """
        try:
            self._thread.start()
            threading.Thread(target=self._observe_regularly, name="heapwatch-observe", daemon=True).start()
        except RuntimeError:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop accepting and free the port; requests under way may finish."""
        self._stopping.set()
        with suppress(OSError):  # `stop` was called before
            self._waker.send(b"x")
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)
        self.server_close()

    def server_close(self) -> None:
        """Close this process's copies of the server's sockets, which is all that a forked child may do."""
        super().server_close()
        self._waker.close()
        self._woken.close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection once a thread is free; in this thread if none can be started."""
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

    def _accept(self) -> None:
        """Accept connections until `stop`. Unlike `serve_forever`, it does not poll, and ends at once."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._stopping.is_set():
                selector.select()
                self.handle_request()

    def _observe_regularly(self) -> None:
        """Observe levels until `stop`. The thread does nothing else: a source may hang."""
        observations = 0
        while not self._stopping.wait(OBSERVATION_SECONDS):
            allow_capture()
            try:
                for function in self.on_observe:
                    function()
                status = self.trainer.status
                if status.observations == observations:  # nobody scraped since
                    snapshots = self.trainer.snapshots
                    latest = snapshots.recent(OBSERVATION_SECONDS / 2, timeout=OBSERVATION_SECONDS)
                    status.observe(latest.families)
                observations = status.observations
            except CollectionStuck:
                continue
            except Exception as error:
                logger.warning("levels were not observed: %s", raised(error))
