"""Authorisation of requests: host, browser, token, rate, and the request body of a cleanup."""

from __future__ import annotations

import hmac
import ipaddress
import json
import math
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from email.message import Message
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from heapwatch.http.addresses import DEFAULT_PORTS, LOOPBACK
from heapwatch.http.signing import SCHEME, NotSigned, TooMany, Verifier
from heapwatch.runtime.cleanup import ACTIONS, CleanupTarget
from heapwatch.runtime.own_files import read_text

SHORTEST_TOKEN = 16  # characters; a shorter one is taken with a warning
MAX_BODY_BYTES = 16 * 1024
MAX_REASON_CHARACTERS = 1000
MAX_WAIT_SECONDS = 60.0
DEFAULT_WAIT_SECONDS = 10.0

_CLEANUP_FIELDS = ("action", "reason", "request_id", "timeout_seconds", *CleanupTarget._fields)
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")


class Refusal(Exception):
    """A rejected request: an error status and a message of one line."""

    def __init__(self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


class TokenBucket:
    """A token bucket: `burst` actions at once, `per_second` in the long run."""

    def __init__(
        self, burst: float, per_second: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._level = burst
        self._filled_at = clock()
        self._lock = threading.Lock()

    def take(self) -> None:
        """Take one token, or raise a 429 with the seconds to wait."""
        with self._lock:
            now = self._clock()
            self._level = min(self._burst, self._level + (now - self._filled_at) * self._per_second)
            self._filled_at = now
            if self._level >= 1:
                self._level -= 1
                return
            wait = math.ceil((1 - self._level) / self._per_second)
        raise Refusal(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"too many cleanup requests; try again in {wait} s",
            {"Retry-After": str(wait)},
        )


class CleanupRequest(NamedTuple):
    """The body of `POST /force_cleanup`."""

    action: str
    reason: str
    request_id: str
    timeout_seconds: float
    target: CleanupTarget


def find_token(token: str | None = None, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the token given, else HEAPWATCH_TOKEN, else what HEAPWATCH_TOKEN_FILE holds, else None.

    Raises:
        ValueError: the token is empty or cannot travel in a header.
        OSError: HEAPWATCH_TOKEN_FILE cannot be read, or is neither this user's nor root's.

    """
    if token is None:
        token = environ.get("HEAPWATCH_TOKEN") or None
    if token is None and environ.get("HEAPWATCH_TOKEN_FILE"):
        token = read_text(os.path.expanduser(environ["HEAPWATCH_TOKEN_FILE"]), named=True).strip()
    return None if token is None else checked_token(token)


def token_warning(token: str | None) -> str | None:
    """What is wrong with a token that is accepted; None if nothing is."""
    if token is None or len(token) >= SHORTEST_TOKEN:
        return None
    return (
        f"the token has {len(token)} characters and may be guessed: use {SHORTEST_TOKEN} or more, "
        "such as those of `openssl rand -hex 16`"
    )


def checked_token(token: str) -> str:
    """Return `token`.

    Raises:
        ValueError: it is empty or cannot travel in a header.

    """
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("the cleanup token must be printable ASCII without spaces, and not empty")
    return token


def host_name(authority: str) -> str:
    """Return the host of `host[:port]` or `[v6]:port` in lower case.

    Raises:
        ValueError: it is not such an address.

    """
    parts = urlsplit(f"//{authority}")
    if parts.path or parts.query or parts.fragment or "@" in authority or parts.hostname is None:
        raise ValueError(f"not a host: {authority!r}")
    _ = parts.port  # raises ValueError when it is not a port number
    return parts.hostname


def check_host(headers: Message, allowed: Iterable[str]) -> None:
    """Reject a foreign Host header: a web page that rebinds its DNS name sends its own.

    A request without Host is let through: HTTP/1.0 tools send none, browsers always do.
    """
    values = headers.get_all("Host", [])
    if not values:
        return
    if len(values) > 1:
        raise Refusal(HTTPStatus.BAD_REQUEST, "more than one Host header")
    try:
        host = host_name(values[0].strip())
    except ValueError:
        raise Refusal(HTTPStatus.BAD_REQUEST, "the Host header is not a host") from None
    if host not in LOOPBACK and host not in allowed:
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            "this trainer does not answer to that Host; if it should, name it in HEAPWATCH_ALLOWED_HOSTS",
        )


def check_addressee(
    headers: Message | Mapping[str, str], local: tuple[str, int], names: Iterable[str]
) -> None:
    """Reject a signed request that was made for another trainer, or receiver, and relayed.

    Args:
        headers: of the request, after `check_host`.
        local: address and port at which this connection arrived.
        names: names of this trainer, and `host:port` where a proxy forwards another port to it.

    """
    scheme = (headers.get("Authorization") or "").strip().partition(" ")[0]
    if scheme.lower() != SCHEME.lower():
        return
    authority = (headers.get("Host") or "").strip().lower()
    address, port = local
    host, asked = host_name(authority), urlsplit(f"//{authority}").port
    forwarded = (asked,) if asked else DEFAULT_PORTS.values()
    if any(f"{host}:{number}" in names for number in forwarded):
        return
    if asked == port and (host not in LOOPBACK or ipaddress.ip_address(address).is_loopback):
        return
    raise Refusal(
        HTTPStatus.MISDIRECTED_REQUEST,
        f"this request was signed for {authority}, which is not this server; "
        "if it is, name that host and port in HEAPWATCH_ALLOWED_HOSTS",
    )


def check_browser(headers: Message) -> None:
    """Reject cross-site requests of a browser."""
    site = headers.get("Sec-Fetch-Site")
    if site is not None and site.strip().lower() not in ("same-origin", "none"):
        raise Refusal(HTTPStatus.FORBIDDEN, "cross-site requests may not clean up (Sec-Fetch-Site)")
    origin = headers.get("Origin")
    if origin is None:
        return
    try:
        authority = urlsplit(origin.strip()).netloc.lower()
    except ValueError:
        authority = ""
    if not authority or authority != (headers.get("Host") or "").strip().lower():
        raise Refusal(HTTPStatus.FORBIDDEN, "requests of another origin may not clean up (Origin)")


def check_authority(
    headers: Message, token: str | None, verifier: Verifier, *, method: str, path: str, body: bytes
) -> None:
    """Reject a request that is neither signed with the token nor carries it as a bearer token.

    The caller has checked that the Host header names this trainer.
    """
    if token is None:
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            "no token is configured: set HEAPWATCH_TOKEN or HEAPWATCH_TOKEN_FILE where the trainer starts, "
            "or heapwatch.start(token=...)",
        )
    scheme, _, given = (headers.get("Authorization") or "").strip().partition(" ")
    if scheme.lower() == SCHEME.lower():
        authority = (headers.get("Host") or "").strip()
        try:
            verifier.check(given, token, method=method, authority=authority, path=path, body=body)
        except NotSigned as problem:
            raise _unauthorized(str(problem)) from None
        except TooMany as problem:
            raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, str(problem), {"Retry-After": "10"}) from None
        return
    matches = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode("ascii"))
    if scheme.lower() != "bearer" or not matches:
        raise _unauthorized(
            "sign the request with the token of this trainer, or send it as 'Authorization: Bearer TOKEN'"
        )


def _unauthorized(detail: str) -> Refusal:
    challenge = f'{SCHEME} realm="heapwatch", Bearer realm="heapwatch"'
    return Refusal(HTTPStatus.UNAUTHORIZED, detail, {"WWW-Authenticate": challenge})


def body_length(headers: Message) -> int:
    """Return the length in bytes that a request declares for its body; 0 without one.

    Raises:
        Refusal: chunked (411), malformed (400), too long (413), or a body that is not JSON (415).

    """
    if "Transfer-Encoding" in headers:
        raise Refusal(HTTPStatus.LENGTH_REQUIRED, "send the body with Content-Length, not in chunks")
    lengths = {value.strip() for value in headers.get_all("Content-Length", [])}
    if len(lengths) > 1 or not all(value.isascii() and value.isdigit() for value in lengths):
        raise Refusal(HTTPStatus.BAD_REQUEST, "Content-Length must be one number of bytes")
    digits = (lengths.pop() if lengths else "0").lstrip("0") or "0"
    if len(digits) > len(str(MAX_BODY_BYTES)) or int(digits) > MAX_BODY_BYTES:
        raise Refusal(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body may have at most {MAX_BODY_BYTES} bytes"
        )
    length = int(digits)
    # An empty body needs no type, so a plain `curl -X POST` is valid.
    if (length or "Content-Type" in headers) and headers.get_content_type() != "application/json":
        raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON: 'Content-Type: application/json'")
    return length


def parse_cleanup(body: bytes) -> CleanupRequest:
    """Parse the body of `POST /force_cleanup`; an empty one requests an emergency cleanup.

    Raises:
        Refusal: 400, naming what is wrong and what is allowed.

    """
    try:
        given = json.loads(body.decode("utf-8"), parse_constant=_no_constant) if body.strip() else {}
    except (ValueError, RecursionError):
        raise _bad("the body is not valid JSON") from None
    if not isinstance(given, dict):
        raise _bad("the body must be a JSON object")
    unknown = sorted(given.keys() - set(_CLEANUP_FIELDS))
    if unknown:
        raise _bad(f"unknown field {_shown(unknown[0])}; allowed: {', '.join(_CLEANUP_FIELDS)}")

    action = given.get("action", "emergency")
    if action not in ACTIONS:
        raise _bad(f"action must be one of {', '.join(ACTIONS)}")
    reason = given.get("reason", "requested over HTTP")
    if not isinstance(reason, str) or len(reason) > MAX_REASON_CHARACTERS:
        raise _bad(f"reason must be a text of at most {MAX_REASON_CHARACTERS} characters")
    reason = " ".join(reason.split())
    if not reason.isprintable():
        raise _bad("reason must be printable text")
    request_id = given.get("request_id", secrets.token_hex(16))
    if not isinstance(request_id, str) or not _REQUEST_ID.fullmatch(request_id):
        raise _bad("request_id must be 1 to 128 printable ASCII characters without spaces")
    seconds = given.get("timeout_seconds", DEFAULT_WAIT_SECONDS)
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not 0 <= seconds <= MAX_WAIT_SECONDS
    ):
        raise _bad(f"timeout_seconds must be a number from 0 to {MAX_WAIT_SECONDS:g}")
    return CleanupRequest(action, reason, request_id, float(seconds), _target(given))


def _target(given: Mapping[str, Any]) -> CleanupTarget:
    texts = {name: given.get(name, "") for name in CleanupTarget._fields}
    for name, text in texts.items():
        if not isinstance(text, str) or len(text) > MAX_REASON_CHARACTERS or not text.isprintable():
            raise _bad(f"{name} must be a printable text of at most {MAX_REASON_CHARACTERS} characters")
    return CleanupTarget(**texts)


def _bad(detail: str) -> Refusal:
    return Refusal(HTTPStatus.BAD_REQUEST, detail)


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 40 else text[:40] + "...")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
