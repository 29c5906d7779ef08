"""Authorisation of requests: host, browser, token, and the request body of a cleanup."""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
from collections.abc import Container, Mapping
from email.message import Message
from http import HTTPStatus
from typing import Any

from heapwatch.http.addresses import LOOPBACK, REFUSAL, is_known
from heapwatch.http.signing import SCHEME, NotSigned, Request, check_signature
from heapwatch.runtime.cleanup import ACTIONS, CleanupRequest, CleanupTarget
from heapwatch.runtime.own_files import read_text

MAX_REQUEST_BYTES = 16 * 1024  # head and body
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


def find_token(token: str | None = None, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the token given, else HEAPWATCH_TOKEN, else what HEAPWATCH_TOKEN_FILE holds, else None.

    Raises:
        ValueError: the token is empty or cannot travel in a header.
        OSError: HEAPWATCH_TOKEN_FILE cannot be read, or is neither this user's nor root's.

    """
    if token is None:
        token = environ.get("HEAPWATCH_TOKEN") or None
    if token is None and environ.get("HEAPWATCH_TOKEN_FILE"):
        token = read_text(os.path.expanduser(environ["HEAPWATCH_TOKEN_FILE"]), any_owner=True).strip()
    return None if token is None else checked_token(token)


def checked_token(token: str) -> str:
    """Return `token`.

    Raises:
        ValueError: it is empty or cannot travel in a header.

    """
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("the cleanup token must be printable ASCII without spaces, and not empty")
    return token


def check_host(headers: Message, names: frozenset[str]) -> None:
    """Reject a foreign Host header: a web page that rebinds its DNS name sends its own.

    A request without Host is let through: HTTP/1.0 tools send none, browsers always do.
    """
    hosts = headers.get_all("Host", [])
    if len(hosts) > 1:
        raise _bad("more than one Host header")
    if hosts and not is_known(hosts[0], names):
        raise Refusal(HTTPStatus.MISDIRECTED_REQUEST, REFUSAL)


def check_addressee(headers: Message | Mapping[str, str], port: int, forwarded: Container[str]) -> None:
    """Reject a signed request that was made for another trainer, and relayed.

    Args:
        headers: of the request, after `check_host`.
        port: at which this connection arrived.
        forwarded: each `host:port` that a proxy forwards to this trainer.

    """
    authority = (headers.get("Host") or "").strip().lower()
    if not is_signed(headers) or authority in forwarded or authority.endswith(f":{port}"):
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
    origin, host = headers.get("Origin"), (headers.get("Host") or "").strip()
    if origin is not None and origin.strip().partition("://")[2].lower() != host.lower():
        raise Refusal(HTTPStatus.FORBIDDEN, "requests of another origin may not clean up (Origin)")


def needs_no_token(headers: Message) -> bool:
    """Whether a command of this machine sends a request to loopback, and neither a browser nor a proxy.

    A browser sends Origin or Sec-Fetch-Site with each POST of a page, an older one at least Referer.
    """
    foreign_headers = ("Authorization", "Origin", "Referer", "Sec-Fetch-Site", "Forwarded", "X-Forwarded-For")
    names_loopback = is_known(headers.get("Host") or "", LOOPBACK)
    return names_loopback and not any(name in headers for name in foreign_headers)


def check_authority(headers: Message, token: str | None, request: Request) -> None:
    """Reject a request that is neither signed with the token nor carries it as a bearer token.

    The caller has checked that the Host header names this trainer.
    """
    if token is None:
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            "no token is configured: set HEAPWATCH_TOKEN or HEAPWATCH_TOKEN_FILE where the trainer starts, "
            "or heapwatch.start(token=...)",
        )
    scheme, _, credentials = (headers.get("Authorization") or "").strip().partition(" ")
    if is_signed(headers):
        try:
            check_signature(credentials, token, request)
        except NotSigned as problem:
            raise _unauthorized(str(problem)) from None
        return
    matches = hmac.compare_digest(credentials.strip().encode("utf-8", "replace"), token.encode("ascii"))
    if scheme.lower() != "bearer" or not matches:
        raise _unauthorized(
            "sign the request with the token of this trainer, or send it as 'Authorization: Bearer TOKEN'"
        )


def is_signed(headers: Message | Mapping[str, str]) -> bool:
    """Whether a request carries a signature, valid or not, and not the token itself."""
    scheme = (headers.get("Authorization") or "").strip().partition(" ")[0]
    return scheme.lower() == SCHEME.lower()


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
    lengths = headers.get_all("Content-Length", ["0"])
    if len(lengths) > 1 or not re.fullmatch("[0-9]{1,20}", lengths[0].strip()):
        raise _bad("Content-Length must be one number of bytes")
    length = int(lengths[0])
    if length > MAX_REQUEST_BYTES:
        raise too_long()
    # An empty body needs no type, so a plain `curl -X POST` is valid.
    if (length or "Content-Type" in headers) and headers.get_content_type() != "application/json":
        raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON: 'Content-Type: application/json'")
    return length


def too_long() -> Refusal:
    """The answer to a request that is too long."""
    return Refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request may have at most {MAX_REQUEST_BYTES} bytes"
    )


def parse_cleanup(body: bytes, *, needs_id: bool = False) -> tuple[CleanupRequest, float]:
    """Parse the body of `POST /force_cleanup`; returns the request and how long to wait.

    An empty body requests an emergency cleanup. The time is in seconds.

    `needs_id`: only a request with its own `request_id` is accepted.

    Raises:
        Refusal: 400, naming what is wrong and what is allowed.

    """
    try:
        document = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        raise _bad("the body is not valid JSON") from None
    if not isinstance(document, dict):
        raise _bad("the body must be a JSON object")
    if unknown := sorted(document.keys() - set(_CLEANUP_FIELDS)):
        raise _bad(f"unknown field {unknown[0][:40]!a}; allowed: {', '.join(_CLEANUP_FIELDS)}")

    action = document.get("action", "emergency")
    if action not in ACTIONS:
        raise _bad(f"action must be one of {', '.join(ACTIONS)}")
    reason = _text(document, "reason", "requested over HTTP")
    request_id = document.get("request_id", "" if needs_id else secrets.token_hex(16))
    if not isinstance(request_id, str) or not _REQUEST_ID.fullmatch(request_id):
        raise _bad("request_id must be 1 to 128 printable ASCII characters without spaces")
    seconds = document.get("timeout_seconds", DEFAULT_WAIT_SECONDS)
    if type(seconds) not in (int, float) or not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise _bad(f"timeout_seconds must be a number from 0 to {MAX_WAIT_SECONDS:g}")
    target = CleanupTarget(*(_text(document, name) for name in CleanupTarget._fields))
    return CleanupRequest(action, reason, "http", request_id, target), float(seconds)


def _text(document: Mapping[str, Any], name: str, default: str = "") -> str:
    text = document.get(name, default)
    if not isinstance(text, str) or len(text) > MAX_REASON_CHARACTERS or not text.isprintable():
        raise _bad(f"{name} must be a printable text of at most {MAX_REASON_CHARACTERS} characters")
    return text


def _bad(detail: str) -> Refusal:
    return Refusal(HTTPStatus.BAD_REQUEST, detail)
