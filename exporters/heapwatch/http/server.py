"""The HTTP server of a trainer: finds a free port, survives forks, and stops completely."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from heapwatch.http.endpoints import EndpointServer, ServedTrainer
from heapwatch.runtime.exposition import CollectionStuck

DEFAULT_PORT = 7777
OBSERVATION_SECONDS = 15.0  # growth rates need samples even when nobody scrapes
_PORTS_SEARCHED = 100


class PortTaken(OSError):
    """The port is taken."""


class Server:
    """Serve one trainer from a daemon thread.

    It is the standard library's threading server (see `connections`): each request has a thread, so a slow
    client delays no other, and the trainer needs neither an event loop nor a web framework.

    Args:
        host: the address to listen on.
        port: 0 takes any free one.
        trainer: the data to serve.
        port_search: move to the next free port when the given one is taken.

    """

    def __init__(self, host: str, port: int, trainer: ServedTrainer, *, port_search: bool = False) -> None:
        if not 0 <= port <= 65535:
            raise ValueError(f"port {port} is not a port; allowed: 0 (any free one) to 65535")
        self.host = host
        self.port = port
        self.trainer = trainer
        self._port_search = port_search and port != 0
        self._listener: EndpointServer | None = None
        self._observed_at = time.monotonic()
        self._observing = threading.Lock()
        self._observations = 0
        self.on_observe: list[Callable[[], object]] = []

    @property
    def url(self) -> str:
        """The address of the landing page."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/"

    def start(self) -> Server:
        """Listen and serve; afterwards `port` is the actual port.

        Raises:
            PortTaken: the port belongs to another process.
            OSError: the host is not an address of this machine, or the port is not permitted.

        """
        if self._listener is not None:
            return self
        self._listener = self._listen()
        self._listener.on_tick = self._observe_regularly
        self.port = self._listener.server_address[1]
        thread = threading.Thread(target=self._listener.serve, name="heapwatch-server", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no further thread is allowed
            self._listener.server_close()
            self._listener = None
            raise
        return self

    def stop(self) -> None:
        """Stop serving and free the port; requests under way may finish. Harmless when not started."""
        listener, self._listener = self._listener, None
        if listener is None:
            return
        listener.stop()
        listener.server_close()

    def abandon(self) -> None:
        """In a forked child: drop the server, which belongs to the parent."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.server_close()

    def _listen(self) -> EndpointServer:
        ports = [self.port]
        if self._port_search:  # any free port, if the next hundred are taken
            ports = [*range(self.port, min(65535, self.port + _PORTS_SEARCHED) + 1), 0]
        for port in ports:
            try:
                return EndpointServer((self.host, port), self.trainer)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise OSError(
                        error.errno, f"cannot listen on {self.host}:{port}: {error.strerror}"
                    ) from None
        raise PortTaken(
            errno.EADDRINUSE,
            f"port {self.port} on {self.host} is taken; choose another port, or 0 for any free one",
        )

    def _observe_regularly(self) -> None:
        if time.monotonic() - self._observed_at < OBSERVATION_SECONDS or self._observing.locked():
            return
        self._observed_at = time.monotonic()
        # In a thread of its own: a source that hangs must not keep the accepting thread from serving.
        with suppress(RuntimeError):  # no more threads can be started; the next time, perhaps
            threading.Thread(target=self._observe, name="heapwatch-observe", daemon=True).start()

    def _observe(self) -> None:
        with self._observing, suppress(CollectionStuck):
            for function in self.on_observe:
                function()
            status = self.trainer.status
            if status.observations == self._observations:  # nobody scraped since
                latest = self.trainer.snapshots.recent(OBSERVATION_SECONDS / 2, timeout=OBSERVATION_SECONDS)
                status.observe(latest.families)
            self._observations = status.observations
