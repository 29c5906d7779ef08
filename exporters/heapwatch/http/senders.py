"""Who sends a request: the address, and on this machine the user, so that users do not share one share."""

from __future__ import annotations

import ipaddress
import socket
import struct
from typing import Any

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

Sender = tuple[str, int | None]


def sender(peer: Any, local: Any) -> Sender:
    """The address of the other side of a TCP connection; with the user's id if it is this machine's.

    Args:
        peer: host and port of the other side, as of `socket.getpeername`.
        local: host and port of this side; without both, the sender is unknown.

    """
    if not peer or not local:
        return "", None
    try:
        host, here = _plain(peer[0]), _plain(local[0])
    except ValueError:  # no address: a Unix socket, or a test
        return str(peer[0]), None
    return host, _user((host, peer[1]), (here, local[1])) if host == here else None


def _plain(address: str) -> str:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)


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
