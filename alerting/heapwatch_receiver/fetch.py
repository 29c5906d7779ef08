"""HTTP requests to a service that may be slow, unavailable or malicious."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx


class FetchError(Exception):
    """There was no usable answer; `status` is that of an answer which is no success."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def client() -> httpx.AsyncClient:
    """A client that follows no redirects, ignores proxy variables and requests uncompressed bodies."""
    return httpx.AsyncClient(
        follow_redirects=False, trust_env=False, headers={"Accept-Encoding": "identity"}, timeout=None
    )


async def fetch(
    client: httpx.AsyncClient, method: str, url: str, *, timeout: float, max_bytes: int, **options: Any
) -> bytes:
    """The body of a 2xx answer, if it is complete within `timeout` seconds and not over `max_bytes`.

    Raises:
        FetchError: the answer is another one, not complete in time or too long, or the request failed.

    """

    async def exchange() -> tuple[int, bytes]:
        async with client.stream(method, url, **options) as response:
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > max_bytes:
                    raise FetchError(f"answered more than {max_bytes} bytes")
            return response.status_code, bytes(body)

    try:
        status, body = await asyncio.wait_for(exchange(), timeout)
    except asyncio.TimeoutError:
        raise FetchError(f"no complete answer within {timeout:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise FetchError(
            f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        ) from error
    if not 200 <= status < 300:
        raise FetchError(f"answered {status}: {body[:300].decode('utf-8', 'replace')}", status)
    return body
