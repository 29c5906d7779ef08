"""Signs requests that change something, so that the secret itself is never sent.

The header `Authorization: Heapwatch-HMAC-SHA256 timestamp=T, signature=S` has as S the HMAC-SHA256, keyed
with the secret, of these lines: the scheme, the method, the host and port asked, the path with its query, T
(seconds since the epoch) and the SHA-256 of the body. Host and port are included so that nobody can relay a
request to another trainer. A repeated request does nothing more, because it has the same `request_id`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from heapwatch.http.addresses import DEFAULT_PORTS
from heapwatch.text.numbers import duration

SCHEME = "Heapwatch-HMAC-SHA256"
WINDOW_SECONDS = 30.0  # how far the clocks of both sides may be apart, and how long a request may travel
_CREDENTIALS = re.compile(r"timestamp=([0-9]{1,12}), ?signature=([0-9a-f]{64})")


class Request(NamedTuple):
    """What a signature covers: `authority` is the host and port asked, `path` is with the query."""

    method: str
    authority: str
    path: str
    body: bytes


class NotSigned(Exception):
    """An invalid signature; the message says why and, if possible, what to do."""


def authorization(
    secret: str, method: str, url: str, body: bytes, *, clock: Callable[[], float] = time.time
) -> str:
    """Return the value of the Authorization header for a request; the clock is in seconds since the epoch."""
    parts, timestamp = urlsplit(url), str(int(clock()))
    request = Request(method, _authority(parts.netloc, parts.scheme), target_of(parts), body)
    signature = _signature(secret, request, timestamp)
    return f"{SCHEME} timestamp={timestamp}, signature={signature}"


def signed_json(secret: str, url: str, document: Mapping[str, Any]) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a signed POST of this document."""
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


def check_signature(
    credentials: str, secret: str, request: Request, *, clock: Callable[[], float] = time.time
) -> None:
    """Return when the request is signed with the secret, within WINDOW_SECONDS of this clock's time.

    `credentials` is its Authorization header after the scheme. The caller has checked that the authority,
    its Host header, names this server.

    Raises:
        NotSigned: it is not; the message may be shown.

    """
    match = _CREDENTIALS.fullmatch(credentials.strip())
    if match is None:
        raise NotSigned(f"after {SCHEME} must come: timestamp=SECONDS, signature=64 HEX")
    timestamp, signature = match.groups()
    request = request._replace(authority=_authority(request.authority, "http"))
    expected = _signature(secret, request, timestamp)
    if not hmac.compare_digest(signature, expected):
        raise NotSigned("the signature does not match this request, or was made with another token")
    age = clock() - float(timestamp)
    if abs(age) > WINDOW_SECONDS:
        difference = f"{duration(abs(age))} {'before' if age > 0 else 'after'} this trainer's time"
        raise NotSigned(
            f"signed {difference}, {duration(WINDOW_SECONDS)} are allowed: set the clocks of both machines"
        )


def _signature(secret: str, request: Request, timestamp: str) -> str:
    method, authority, path, body = request
    lines = (SCHEME, method.upper(), authority, path, timestamp, hashlib.sha256(body).hexdigest())
    return hmac.new(secret.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()


def _authority(netloc: str, scheme: str) -> str:
    """Host and port as a Host header has them, in lower case and without the scheme's own port."""
    host = netloc.rpartition("@")[2].strip().lower()
    return host.removesuffix(f":{DEFAULT_PORTS.get(scheme, '')}")
