"""The names of this machine, and which of its users is at the other end of a connection."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_PORTS = {"http": 80, "https": 443}
REFUSAL = "not a name of this machine; if it should be, name it in HEAPWATCH_ALLOWED_HOSTS"
_ANY_ADDRESS = "*"
_LISTEN = "0A"
_ROOT = 0

# Kernel interface: sock_diag(7).
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_EVERY_STATE = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBBI")
_UID = struct.Struct("=I")
_UID_AT = _HEADER.size + 4 + 48 + 12
_ANSWER_SECONDS = 1.0

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Sender = tuple[str, int | None]


class ForeignListener(Exception):
    """Another user's process listens on the port of a trainer of this user."""


def allowed_hosts(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """The hosts in HEAPWATCH_ALLOWED_HOSTS, some with a port."""
    given = environ.get("HEAPWATCH_ALLOWED_HOSTS", "").lower().split(",")
    return frozenset(name.strip() for name in given) - {""}


def without_port(authority: str) -> str:
    """The host of `host[:port]`, of `[v6][:port]` or of an IPv6 address alone."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority if authority.count(":") > 1 else authority.partition(":")[0]


def known_names(bind: str, environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Host names that a service which listens on `bind` accepts, with those of HEAPWATCH_ALLOWED_HOSTS.

    This is against DNS rebinding: the owner of a web page can make its name resolve to this machine; the
    browser then treats the service as part of the page. IP addresses cannot be misused so, and are accepted
    if the service listens on more than loopback.
    """
    names = {*LOOPBACK, *map(without_port, allowed_hosts(environ))} - {_ANY_ADDRESS}
    if bind not in LOOPBACK:
        names |= {bind.lower(), socket.gethostname().lower(), _ANY_ADDRESS}
    return frozenset(names - {""})


def is_known(authority: str, names: frozenset[str]) -> bool:
    """Whether a Host header, `host[:port]`, names this machine."""
    host = without_port(authority.strip().lower())
    if host in names - {_ANY_ADDRESS}:
        return True
    with suppress(ValueError):
        return _ANY_ADDRESS in names and bool(ipaddress.ip_address(host))
    return False


def check_owner(url: str, *, tables: Path = Path("/proc/net")) -> None:
    """Return unless another user listens on the port of this machine that `url` names.

    Root may listen for any user and may call any user. Nothing is raised if no process listens, or if the
    system does not report who does.

    Args:
        url: the address of the request.
        tables: the folder of the kernel's socket tables.

    Raises:
        ForeignListener: names the user.

    """
    me = os.geteuid()
    parts = urlsplit(url)
    port = parts.port or DEFAULT_PORTS.get(parts.scheme)
    if me == _ROOT or port is None:
        return
    for address in _own_addresses(parts.hostname or ""):
        for owner in _owners(address, port, tables):
            if owner not in (me, _ROOT):
                raise ForeignListener(
                    f"on port {port} of this machine user {owner} listens, not user {me}: no request is sent"
                )


def sender(peer: Any, local: Any) -> Sender:
    """The address of the other side of a TCP connection; with the user's id if it is this machine's.

    Args:
        peer: host and port of the other side, as of `socket.getpeername`.
        local: host and port of this side; without both, the sender is unknown.

    """
    if not peer or not local:
        return "", None
    try:
        host, here = str(_parsed(peer[0])), str(_parsed(local[0]))
    except ValueError:  # no address: a Unix socket, or a test
        return str(peer[0]), None
    return host, _user((host, peer[1]), (here, local[1])) if host == here else None


def _parsed(text: str) -> Address:
    """An address without its zone; an IPv4 address that IPv6 maps is that address."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def _own_addresses(host: str) -> Iterable[Address]:
    """The addresses of this machine that `host` resolves to; none for another machine."""
    if host == "localhost":
        return [_parsed("127.0.0.1"), _parsed("::1")]
    if host == socket.gethostname().lower():
        return _interfaces()
    try:
        address = _parsed(host)
    except ValueError:
        return ()
    return [address] if address.is_loopback or address in _interfaces() else ()


def _interfaces() -> list[Address]:
    return [
        _parsed(one.address)
        for addresses in psutil.net_if_addrs().values()
        for one in addresses
        if one.family in (socket.AF_INET, socket.AF_INET6)
    ]


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
    return _parsed(str(ipaddress.ip_address(packed)))


def _user(peer: tuple[str, int], local: tuple[str, int]) -> int | None:
    """The user who owns the socket at `peer`; None if the kernel does not say."""
    family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
    addresses = [socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (peer, local)]
    ports = struct.pack("!HH", peer[1], local[1])
    ends = ports + b"".join(addresses) + b"\0" * 4 + b"\xff" * 8  # any interface, any cookie
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, _EVERY_STATE) + ends
    header = _HEADER.pack(_HEADER.size + len(question), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(_ANSWER_SECONDS)
            kernel.sendto(header + question, (0, 0))
            answer = kernel.recv(4096)
    except (OSError, AttributeError):
        return None
    if len(answer) < _UID_AT + _UID.size or _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    return int(_UID.unpack_from(answer, _UID_AT)[0])
