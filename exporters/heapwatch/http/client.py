"""HTTP client for trainers on the standard library: with limits, without proxies or redirects."""

from __future__ import annotations

import http.client
import io
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from heapwatch.errors import Unreachable, UsageError
from heapwatch.http import signing
from heapwatch.http.deadline import UntilDeadline
from heapwatch.runtime.failures import describe
from heapwatch.text.terminal import plain

TIMEOUT_SECONDS = 5.0
MAX_ANSWER_BYTES = 64 * 2**20
_MAX_ERROR_BYTES = 4096
_MAX_REASON_CHARACTERS = 300


def base_url(text: str) -> str:
    """Return `http://host:port` for `host:port` or a URL.

    Raises:
        UsageError: it is neither.

    """
    url = (text if "://" in text else f"http://{text}").rstrip("/")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and not parts.query and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(f"{text!r} is not an address; allowed: host:port, or a URL that begins with http")
    return url


def get_text(url: str, max_bytes: int = MAX_ANSWER_BYTES) -> str:
    """Return the body of a successful GET.

    Raises:
        Unreachable: there is none, or it is longer than `max_bytes`.

    """
    return _ask("GET", url, TIMEOUT_SECONDS, max_bytes)[1].decode("utf-8", "replace")


def get_json(url: str, max_bytes: int = MAX_ANSWER_BYTES) -> Any:
    """Return the JSON in the response to a GET.

    Raises:
        Unreachable: there is no successful response, it is not JSON, or it is longer than `max_bytes`.

    """
    return _decoded(url, get_text(url, max_bytes))


def post_json(url: str, document: Mapping[str, Any], secret: str, timeout: float) -> tuple[int, Any]:
    """Send a POST that is signed with this secret; return the status (2xx) and the JSON of the response.

    Raises:
        Unreachable: there is no successful response, or it is not JSON.

    """
    body, headers = signing.signed_json(secret, url, document)
    status, answer = _ask("POST", url, timeout, 2**20, body, headers)
    return status, _decoded(url, answer.decode("utf-8", "replace"))


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Raise Unreachable, which names `what`, for errors from a response of unexpected types.

    Raises:
        Unreachable: the response has unexpected types.

    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise Unreachable(f"{what} sends an invalid response: {describe(error)}") from None


def _ask(
    method: str,
    url: str,
    timeout: float,
    max_bytes: int,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection_type = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connection_type(parts.hostname or "", parts.port, timeout=timeout)
    connection.response_class = _Response
    try:
        all_headers = {"Accept-Encoding": "identity", **(headers or {})}
        connection.request(method, signing.target_of(parts), body, all_headers)
        response = connection.getresponse()
        is_success = 200 <= response.status < 300
        limit = max_bytes if is_success else _MAX_ERROR_BYTES
        answer = response.read(limit + 1)
        if is_success and len(answer) > limit:
            raise ValueError(f"more than {limit} bytes")
    except TimeoutError:
        raise Unreachable(f"{url} does not answer within {timeout:g} s") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"{url} does not answer: {_problem(error)}") from None
    finally:
        connection.close()
    if not is_success:
        reason = _reason(answer) or response.reason
        raise Unreachable(f"{url} answers {response.status}: {plain(reason, _MAX_REASON_CHARACTERS)}")
    return response.status, answer


class _Response(http.client.HTTPResponse):
    """A response that must be complete within the connection's timeout."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp.close()
        self.fp = io.BufferedReader(UntilDeadline(sock, sock.gettimeout() or TIMEOUT_SECONDS))


def _problem(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return plain(error, _MAX_REASON_CHARACTERS) or type(error).__name__


def _reason(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def _decoded(url: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unreachable(f"{url} does not respond with JSON: is it a trainer's port?") from None
