"""Checks that a port is free: the web server would fail with a traceback."""

import errno
import socket

import psutil


def check_free(host: str, port: int) -> None:
    """Raise ValueError if the port cannot be used; it names the process that listens there, if visible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise ValueError(f"cannot listen on {host}:{port}: {problem.strerror}") from None
            raise ValueError(
                f"port {port} is taken{_owner(port)}; stop that, or set HEAPWATCH_DASHBOARDS_PORT"
            ) from None


def _owner(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr.port == port and connection.pid:
                process = psutil.Process(connection.pid)
                return f" by {' '.join(process.cmdline()[:4])} (process {process.pid})"
    except psutil.Error:
        pass  # other users' processes are not shown on every system
    return ""
