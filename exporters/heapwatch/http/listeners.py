"""The user who listens on a local port: another user may have taken the port of a trainer that died."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil

_LISTEN = "0A"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ROOT = 0

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForeignListener(Exception):
    """Another user's process listens on the port of a trainer of this user."""


def check_owner(url: str, *, tables: Path = Path("/proc/net")) -> None:
    """Return unless `url` is a port of this machine on which another user listens.

    Root may listen for any user and may call any user. Nothing is raised if no process listens, or if the
    system does not report who does.

    Args:
        url: the address of the request.
        tables: the folder of the kernel's socket tables.

    Raises:
        ForeignListener: names the user.

    """
    me = os.geteuid() if hasattr(os, "geteuid") else _ROOT
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    if me == _ROOT or port is None:
        return
    for address in _own_addresses(parts.hostname or ""):
        for owner in _owners(address, port, tables):
            if owner not in (me, _ROOT):
                raise ForeignListener(
                    f"on port {port} of this machine user {owner} listens, not user {me}: no request is sent"
                )


def _own_addresses(host: str) -> Iterable[Address]:
    """The addresses of this machine that `host` resolves to; none for another machine."""
    if host in ("localhost", socket.gethostname().lower()):
        return _interfaces() if host != "localhost" else _loopback()
    try:
        address = _plain_address(host.partition("%")[0])
    except ValueError:
        return ()
    return [address] if address.is_loopback or address in _interfaces() else ()


def _loopback() -> list[Address]:
    return [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]


def _interfaces() -> list[Address]:
    found: list[Address] = []
    for addresses in psutil.net_if_addrs().values():
        for one in addresses:
            if one.family in (socket.AF_INET, socket.AF_INET6):
                found.append(_plain_address(one.address.partition("%")[0]))
    return found


def _owners(address: Address, port: int, tables: Path) -> set[int]:
    """The users who listen there: on the address itself, else on all addresses."""
    exact, wildcard = set(), set()
    for local, local_port, owner in _listening(tables):
        if local_port == port:
            if local == address:
                exact.add(owner)
            elif local.is_unspecified and local.version >= address.version:
                wildcard.add(owner)
    return exact or wildcard


def _listening(tables: Path) -> Iterator[tuple[Address, int, int]]:
    for table in ("tcp", "tcp6"):
        try:
            lines = (tables / table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 7 and fields[3] == _LISTEN:
                host, _, port = fields[1].partition(":")
                yield _from_kernel(host), int(port, 16), int(fields[7])


def _from_kernel(text: str) -> Address:
    """An address as proc(5) writes it: words of four bytes, each in the machine's own order."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    return _unmapped(ipaddress.ip_address(packed))


def _plain_address(text: str) -> Address:
    return _unmapped(ipaddress.ip_address(text))


def _unmapped(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
