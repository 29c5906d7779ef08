"""Host names under which a service of this machine accepts requests."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping
from contextlib import suppress

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_PORTS = {"http": 80, "https": 443}
REFUSAL = "not a name of this machine; if it should be, name it in HEAPWATCH_ALLOWED_HOSTS"
_ANY_ADDRESS = "*"


def allowed_hosts(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return the hosts in HEAPWATCH_ALLOWED_HOSTS; some have a port."""
    hosts = environ.get("HEAPWATCH_ALLOWED_HOSTS", "").lower().split(",")
    return frozenset(name.strip() for name in hosts) - {""}


def without_port(authority: str) -> str:
    """Return the host of `host[:port]`, of `[v6][:port]` or of an IPv6 address."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority if authority.count(":") > 1 else authority.partition(":")[0]


def known_names(bind: str, environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return the host names that a service on `bind` accepts, with those of HEAPWATCH_ALLOWED_HOSTS.

    This prevents DNS rebinding: the owner of a web page can make its name resolve to this machine; the
    browser then treats the service as part of the page. IP addresses cannot be misused that way. The service
    accepts them if it listens on more than loopback.
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
