"""Signatures of requests that change something: the secret itself is never sent.

The header `Authorization: Heapwatch-HMAC-SHA256 timestamp=T, nonce=N, signature=S` has as S the HMAC-SHA256,
keyed with the secret, of these lines: the scheme, the method, the host and port asked, the path with its
query, T (seconds since the epoch), N and the SHA-256 of the body. Host and port are
included so that nobody can relay a request to another trainer.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from heapwatch.http.addresses import DEFAULT_PORTS

SCHEME = "Heapwatch-HMAC-SHA256"
WINDOW_SECONDS = 30.0  # how far the clocks of both sides may be apart, and how long a request may travel
_MOST_NONCES = 8192
MOST_FROM_ONE = 1024  # signatures that are remembered for one sender, where the sender is known
_CREDENTIALS = re.compile(r"timestamp=([0-9]{1,12}), ?nonce=([0-9a-f]{32}), ?signature=([0-9a-f]{64})")


class NotSigned(Exception):
    """An invalid signature; the message says why and, if possible, what to do."""


class TooMany(Exception):
    """Too many nonces are stored to detect further replays."""


def authorization(
    secret: str, method: str, url: str, body: bytes, *, clock: Callable[[], float] = time.time
) -> str:
    """Return the value of the Authorization header for a request; the clock is in seconds since the epoch."""
    parts = urlsplit(url)
    timestamp, nonce = str(int(clock())), secrets.token_hex(16)
    signature = _signature(
        secret, method, _authority(parts.netloc, parts.scheme), target_of(parts), timestamp, nonce, body
    )
    return f"{SCHEME} timestamp={timestamp}, nonce={nonce}, signature={signature}"


def signed_json(secret: str, url: str, document: Mapping[str, Any]) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of a POST of this document that is signed with the secret."""
    body = json.dumps(document).encode()
    signature = authorization(secret, "POST", url, body)
    return body, {"Content-Type": "application/json", "Authorization": signature}


def target_of(parts: SplitResult) -> str:
    """The path of a URL with its query, as the first line of a request has it."""
    return f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"


def webhook_token(secret: str) -> str:
    """Return the bearer token that Alertmanager sends to the receiver, since it cannot sign.

    It is a one-way function of the secret: whoever has it can post alerts and nothing else.
    """
    return hmac.new(secret.encode(), b"heapwatch alertmanager webhook", hashlib.sha256).hexdigest()


class Verifier:
    """Accepts each signed request once, within WINDOW_SECONDS of its time.

    Requests signed before the verifier was made are refused: they were meant for an earlier process.
    `clock` is in seconds since the epoch, `steady` in monotonic ones.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._steady = steady
        self._made = steady()
        self._nonces: dict[str, tuple[float, object]] = {}
        self._from: Counter[object] = Counter()
        self._lock = threading.Lock()

    def check(
        self,
        credentials: str,
        secret: str,
        *,
        method: str,
        authority: str,
        path: str,
        body: bytes,
        sender: object = None,
    ) -> None:
        """Return when the request is signed with the secret and new.

        `credentials` is its Authorization header after the scheme, `authority` its Host header, of which the
        caller has checked that it names this server, and `path` its target with the query. Where a `sender`
        is given, each may have no more than a share.

        Raises:
            NotSigned: it is not; the message may be shown.
            TooMany: more requests came than can be stored, or from one sender than his share.

        """
        found = _CREDENTIALS.fullmatch(credentials.strip())
        if found is None:
            raise NotSigned(f"after {SCHEME} must come: timestamp=SECONDS, nonce=32 HEX, signature=64 HEX")
        timestamp, nonce, given = found.groups()
        expected = _signature(secret, method, _authority(authority, "http"), path, timestamp, nonce, body)
        if not hmac.compare_digest(given, expected):
            raise NotSigned("the signature does not match this request, or was made with another token")
        self._check_time(float(timestamp))
        self._remember(nonce, sender)

    def _check_time(self, signed_at: float) -> None:
        now = self._clock()
        age = now - signed_at
        if abs(age) > WINDOW_SECONDS:
            apart = f"{abs(age):.0f} s {'before' if age > 0 else 'after'} this trainer's time"
            raise NotSigned(
                f"signed {apart}, {WINDOW_SECONDS:.0f} s are allowed: set the clocks of both machines"
            )
        if signed_at < int(now - (self._steady() - self._made)):
            raise NotSigned("signed before this trainer began to listen: sign the request again")

    def _remember(self, nonce: str, sender: object) -> None:
        now = self._steady()
        with self._lock:
            if nonce in self._nonces:
                raise NotSigned("this request was received before: replays are rejected")
            share = _MOST_NONCES if sender is None else MOST_FROM_ONE
            if len(self._nonces) >= _MOST_NONCES or self._from[sender] >= share:
                self._nonces = {kept: entry for kept, entry in self._nonces.items() if entry[0] > now}
                self._from = Counter(who for _, who in self._nonces.values())
            if len(self._nonces) >= _MOST_NONCES or self._from[sender] >= share:
                raise TooMany(f"more than {share} signed requests within {2 * WINDOW_SECONDS:.0f} s")
            # a request may be dated WINDOW_SECONDS ahead and is then valid for twice as long
            self._nonces[nonce] = (now + 2 * WINDOW_SECONDS + 1, sender)
            self._from[sender] += 1


def _signature(
    secret: str, method: str, authority: str, path: str, timestamp: str, nonce: str, body: bytes
) -> str:
    lines = (SCHEME, method.upper(), authority, path, timestamp, nonce, hashlib.sha256(body).hexdigest())
    return hmac.new(secret.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()


def _authority(netloc: str, scheme: str) -> str:
    """Host and port as a Host header has them, in lower case and without the scheme's own port."""
    host = netloc.rpartition("@")[2].strip().lower()
    return host.removesuffix(f":{DEFAULT_PORTS.get(scheme, '')}")
