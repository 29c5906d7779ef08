"""`/targets`: trainers register over the network by a signed POST, Prometheus reads the list.

A registration lasts LIFETIME seconds and is renewed three times in this time. Registrations are kept in
memory. After a restart the list is withheld until every trainer has had time to renew; meanwhile Prometheus
keeps its targets. A trainer that does not renew in time, and has not removed its registration, is recorded as
lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heapwatch import lost
from heapwatch.http.addresses import LOOPBACK, REFUSAL, without_port
from heapwatch.http.client import RENEWAL_SECONDS
from heapwatch.http.guards import Refusal, check_addressee
from heapwatch.http.signing import SCHEME, NotSigned, check_signature
from heapwatch.lost import Lost
from heapwatch.runtime.plain_text import plain
from heapwatch_receiver.payload import explain

_MAX_BODY_BYTES = 1024
LIFETIME = 3 * RENEWAL_SECONDS
_LATE = _KNOWN_AFTER = 1.25 * RENEWAL_SECONDS
MOST = 4000
MOST_FROM_ONE = 500


class TooManyTrainers(Exception):
    """The largest number of trainers is registered, in all or by this sender."""


@dataclass
class _Registration:
    sender: object
    until: float
    late: bool = False


class Registrations:
    """Addresses, `host:port`, and when they expire; `lost_dir` has the trainers that stopped renewing."""

    def __init__(self, lost_dir: Path, steady: Callable[[], float] = time.monotonic) -> None:
        self._lost_dir = lost_dir
        self._steady = steady
        self._began = steady()
        self._known: dict[str, _Registration] = {}

    def add(self, address: str, sender: object = None) -> None:
        """Register or renew. Raises TooManyTrainers."""
        self._forget()
        if address not in self._known:
            if len(self._known) >= MOST:
                raise TooManyTrainers(f"{MOST} trainers are registered already")
            if sum(sender == one.sender for one in self._known.values()) >= MOST_FROM_ONE:
                raise TooManyTrainers(f"{MOST_FROM_ONE} trainers of this address are registered already")
        self._known[address] = _Registration(sender, self._steady() + LIFETIME)
        lost.forget(self._lost_dir, address)

    def remove(self, address: str) -> None:
        """Remove a registration, if there is one."""
        self._known.pop(address, None)
        lost.forget(self._lost_dir, address)

    def addresses(self) -> list[str] | None:
        """All registered addresses; None shortly after the start, while the list may be incomplete."""
        if self._steady() - self._began < _KNOWN_AFTER:
            return None
        self._forget()
        return sorted(self._known)

    def _forget(self) -> None:
        now = self._steady()
        for address, one in self._known.items():
            if one.until - now < LIFETIME - _LATE and not one.late:
                one.late = True
                with suppress(OSError):  # the disk is full: the trainer is missed only
                    lost.write(self._lost_dir, Lost(address, "", lost.SILENT, time.time()))
        self._known = {address: one for address, one in self._known.items() if one.until > now}


class RegistrationRequest(BaseModel):
    """The body of a registration: port, the hosts that it may come from, and whether the trainer ends."""

    model_config = ConfigDict(extra="forbid", strict=True)

    port: Annotated[int, Field(ge=1024, le=65535)]
    hosts: Annotated[list[Annotated[str, Field(max_length=255)]], Field(min_length=1, max_length=20)]
    ends: bool = False


def add_routes(
    app: FastAPI, registrations: Registrations, token: str, names: Collection[str], taken: Collection[int]
) -> None:
    """Add `POST /targets` and `GET /targets` to the application; registrations are signed with the token.

    `names`: of this receiver, and `host:port` where a proxy forwards another port to it. `taken`: ports of
    the stack's own services on this machine, which no trainer has.
    """

    async def register(request: Request) -> Response:
        body = await read_body(request, _MAX_BODY_BYTES)
        local = request.scope.get("server")
        _check_addressee(request, names)
        _authorize(request, body, token)
        try:
            asked = RegistrationRequest.model_validate_json(body)
        except ValidationError as error:
            allowed = '{"port": 7777, "hosts": ["10.0.0.5"], "ends": false}'
            raise HTTPException(400, f"{explain(error.errors())}; allowed is {allowed}") from None
        if request.client is None:
            raise HTTPException(400, "the request comes from no address")
        host = request.client.host
        if host not in asked.hosts:
            raise HTTPException(
                403,
                f"this request was signed by a trainer at {plain(', '.join(asked.hosts), 100)}, "
                f"and comes from {host}: behind NAT name {host} in its HEAPWATCH_ALLOWED_HOSTS",
            )
        if local and host == local[0] and asked.port in taken:
            raise HTTPException(400, f"port {asked.port} of this machine is a service of the stack")
        address = f"[{host}]:{asked.port}" if ":" in host else f"{host}:{asked.port}"
        if asked.ends:
            registrations.remove(address)
            return JSONResponse({"address": address, "expires_in_seconds": 0})
        try:
            registrations.add(address, host)
        except TooManyTrainers as error:
            raise HTTPException(429, str(error), {"Retry-After": f"{LIFETIME:.0f}"}) from None
        return JSONResponse({"address": address, "expires_in_seconds": LIFETIME})

    app.add_route("/targets", register, methods=["POST"])

    # async: in a thread of its own it would change registrations while another is added
    @app.get("/targets", include_in_schema=False)
    async def targets() -> list[dict[str, Any]]:
        """Registered trainers in the format of Prometheus's `http_sd_configs`."""
        addresses = registrations.addresses()
        if addresses is None:
            raise HTTPException(503, "just started: trainers register again within a minute")
        return [{"targets": addresses, "labels": {}}]


def _check_addressee(request: Request, names: Collection[str]) -> None:
    """Reject a registration that was signed for another receiver."""
    local = request.scope.get("server") or ("", 0)
    host = without_port(request.headers.get("Host", "").lower())
    known = {*LOOPBACK, *map(without_port, names), local[0]}
    try:
        if host not in known:
            raise Refusal(HTTPStatus.MISDIRECTED_REQUEST, REFUSAL)
        check_addressee(request.headers, local, names)
    except Refusal as refusal:
        raise HTTPException(refusal.status, refusal.detail) from None


def _authorize(request: Request, body: bytes, token: str) -> None:
    """Accept only requests that are signed with the token; the token itself is never sent."""
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != SCHEME.lower():
        raise HTTPException(
            401, "a request signed with the stack's token is needed", {"WWW-Authenticate": SCHEME}
        )
    try:
        check_signature(
            credentials,
            token,
            method=request.method,
            authority=request.headers.get("Host", ""),
            path=request.url.path,
            body=body,
        )
    except NotSigned as error:
        raise HTTPException(401, str(error), {"WWW-Authenticate": SCHEME}) from None


async def read_body(request: Request, limit: int) -> bytes:
    """The body of a request, if it has at most `limit` bytes, else HTTPException 413."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise HTTPException(413, f"a body of up to {limit} bytes is allowed", {"Connection": "close"})
    return bytes(body)
