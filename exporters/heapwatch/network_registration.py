"""Registration with a stack on another machine, whose receiver lists trainers for Prometheus."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from heapwatch.errors import UsageError
from heapwatch.http.addresses import LOOPBACK, allowed_hosts, without_port
from heapwatch.http.client import RENEWAL_SECONDS, base_url, post_json
from heapwatch.http.guards import find_token

log = logging.getLogger("heapwatch")

_RETRY_SECONDS = 15.0
_TIMEOUT_SECONDS = 5.0
_LAST_TIMEOUT_SECONDS = 2.0  # short, because the end of training waits for it


class NetworkRegistration:
    """Registers a server with the receiver at `url`, from a thread of its own, until it is removed.

    Errors are logged once and never reach training. The addresses that a request may come from are signed
    with it: those of this machine towards the receiver, and what HEAPWATCH_ALLOWED_HOSTS names, for NAT.
    Without a token of the trainer's own code it is HEAPWATCH_TOKEN, or that of HEAPWATCH_TOKEN_FILE.
    """

    stack = None
    folder = None

    def __init__(
        self,
        url: str,
        host: str,
        port: int,
        *,
        token: str | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._port = port
        self._named = sorted(set(map(without_port, allowed_hosts(environ))))
        self._url = ""
        self.token: str | None = None
        self._said = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._silent = False
        try:
            self.token = find_token(token, environ)
            base = base_url(url)
        except (OSError, ValueError, UsageError) as error:
            self._say(str(error))
            return
        if self.token is None:
            self._say("it needs the stack's token: set HEAPWATCH_TOKEN or HEAPWATCH_TOKEN_FILE")
        elif host in LOOPBACK and urlsplit(base).hostname not in LOOPBACK:
            self._say("another machine does not reach loopback: set host= or HEAPWATCH_BIND")
        else:
            self._url = f"{base}/targets"

    def refresh(self) -> bool:
        """Start to register; returns False, as the stack never changes."""
        if self._url and self._thread is None and not self._ended.is_set():
            self._thread = threading.Thread(target=self._renew, name="heapwatch-register", daemon=True)
            self._thread.start()
        return False

    def describe(self) -> str:
        """One line: where this registers, or why it does not."""
        return f"registers at {self._url}" if self._url else f"no stack will find this trainer: {self._said}"

    def remove(self, failure: str = "", *, at_exit: bool = False) -> None:
        """Take the registration back; after a failure it falls silent. A second call does nothing."""
        if self._ended.is_set():
            return
        self._silent = bool(failure)
        self._ended.set()
        if self._thread is not None and not failure:
            self._thread.join(_LAST_TIMEOUT_SECONDS)

    def _renew(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            try:
                post_json(self._url, self._registered(), self.token or "", _TIMEOUT_SECONDS)
                pause, self._said = RENEWAL_SECONDS, ""
            except Exception as error:
                pause = _RETRY_SECONDS
                self._say(str(error))
        if self._silent:
            return
        with suppress(Exception):  # then it expires
            ends = {**self._registered(), "ends": True}
            post_json(self._url, ends, self.token or "", _LAST_TIMEOUT_SECONDS)

    def _registered(self) -> dict[str, object]:
        return {"port": self._port, "hosts": [*_own_addresses(self._url), *self._named]}

    def _say(self, message: str) -> None:
        if message != self._said:
            self._said = message
            log.warning("not registered with the stack: %s", message)


def _own_addresses(url: str) -> list[str]:
    """The addresses of this machine from which `url` is asked, one for each address that its host has."""
    parts, found = urlsplit(url), []
    with suppress(OSError):
        for family, kind, _, _, address in socket.getaddrinfo(
            parts.hostname, parts.port or 80, type=socket.SOCK_DGRAM
        ):
            with suppress(OSError), socket.socket(family, kind) as probe:
                probe.connect(address)  # a datagram socket: nothing is sent
                found.append(str(probe.getsockname()[0]).partition("%")[0])
    return list(dict.fromkeys(found))
