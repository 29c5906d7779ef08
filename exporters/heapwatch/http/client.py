"""Requests to trainers and to Prometheus, by the standard library: bounded, no proxies, no redirects."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from heapwatch.errors import Unreachable, UsageError

TIMEOUT_SECONDS = 5.0
MAX_ANSWER_BYTES = 64 * 2**20


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token must not follow a redirect to somebody else."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)


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
        raise UsageError(f"{text!r} is no address; allowed: host:port, or a URL that begins with http")
    return url


def get_text(url: str) -> str:
    """Return what a GET answers with 200.

    Raises:
        Unreachable: it does not.

    """
    return _open(urllib.request.Request(url), TIMEOUT_SECONDS)[1].decode("utf-8", "replace")


def get_json(url: str, parameters: Mapping[str, str] | None = None) -> Any:
    """Return the JSON that a GET answers.

    Raises:
        Unreachable: it does not answer, or with something else.

    """
    query = f"?{urlencode(parameters)}" if parameters else ""
    return _decoded(url, get_text(url + query))


def post_json(url: str, document: Mapping[str, Any], token: str, timeout: float) -> tuple[int, Any]:
    """Return the status (2xx) and the JSON that a POST with this bearer token answers.

    Raises:
        Unreachable: it does not answer, or with an error.

    """
    request = urllib.request.Request(
        url,
        data=json.dumps(document).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
        method="POST",
    )
    status, body = _open(request, timeout)
    return status, _decoded(url, body.decode("utf-8", "replace"))


def _open(request: urllib.request.Request, timeout: float) -> tuple[int, bytes]:
    url = request.full_url.partition("?")[0]
    try:
        with _opener.open(request, timeout=timeout) as response:
            status: int = response.status
            body = _read(response, time.monotonic() + timeout)
    except urllib.error.HTTPError as error:
        with error:
            raise Unreachable(f"{url} answers {error.code}: {_reason(error)}") from None
    except urllib.error.URLError as error:
        raise Unreachable(f"{url} does not answer: {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"{url} does not answer: {error or type(error).__name__}") from None
    return status, body


def _read(response: http.client.HTTPResponse, deadline: float) -> bytes:
    body = bytearray()
    while chunk := response.read1(64 * 1024):
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise ValueError(f"more than {MAX_ANSWER_BYTES} bytes")
        if time.monotonic() > deadline:  # a socket's own time limit starts again with every byte
            raise ValueError("too slow")
    return bytes(body)


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(4096))["error"])
    except (OSError, ValueError, LookupError, TypeError):
        return str(error.reason)


def _decoded(url: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Unreachable(f"{url} does not answer JSON: is it a trainer's port?") from None
