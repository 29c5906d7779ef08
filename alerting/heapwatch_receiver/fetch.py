"""HTTP requests to a service that may be slow, unavailable or malicious."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx


class FetchError(Exception):
    """There was no usable answer; the message gives the reason."""


@dataclass(frozen=True)
class Reply:
    """A complete answer."""

    status: int
    headers: httpx.Headers
    body: bytes


def client() -> httpx.AsyncClient:
    """A client that follows no redirects, ignores proxy variables and requests uncompressed bodies."""
    return httpx.AsyncClient(
        follow_redirects=False, trust_env=False, headers={"Accept-Encoding": "identity"}, timeout=None
    )


async def fetch(
    client: httpx.AsyncClient, method: str, url: str, *, timeout: float, max_bytes: int, **options: Any
) -> Reply:
    """The answer, if it is complete within `timeout` seconds and not over `max_bytes`.

    Raises:
        FetchError: it is not complete in time, too long, or the request failed.

    """

    async def exchange() -> Reply:
        async with client.stream(method, url, **options) as response:
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > max_bytes:
                    raise FetchError(f"answered more than {max_bytes} bytes")
            return Reply(response.status_code, response.headers, bytes(body))

    try:
        return await asyncio.wait_for(exchange(), timeout)
    except asyncio.TimeoutError:
        raise FetchError(f"no complete answer within {timeout:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise FetchError(
            f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        ) from error
