"""`heapwatch ray`: the exporter of a machine on every node of a running Ray cluster."""

from __future__ import annotations

import argparse
import json
import signal
import threading
from pathlib import Path
from typing import Any

from heapwatch.errors import UsageError, reason
from heapwatch.registration import choose
from heapwatch.runtime.own_files import make_private, replace
from heapwatch.text.terminal import say

_EVERY_SECONDS = 15.0
_FILE = "ray.json"
_EPILOG = """
Each node gets one detached actor without a CPU, which reads the processes of its machine and serves their
groups on the node's address in the cluster. Run it with the Python of the cluster. It goes on until Ctrl-C,
as nodes come and go; the actors stay until `heapwatch ray --stop`.

exit codes:
  0   the actors are placed, or removed
  1   there is no cluster, or no node answers
  64  the command line is wrong
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "ray",
        help="watch all machines of a Ray cluster",
        description="Watch the machines of a running Ray cluster, and tell Prometheus their addresses.",
        epilog=_EPILOG,
    )
    parser.add_argument("--address", default="auto", help="address of the cluster (%(default)s)")
    parser.add_argument(
        "--targets",
        type=Path,
        metavar="FILE",
        help="file for Prometheus's file_sd_configs (default: ray.json, where the stack of this user reads)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--once", action="store_true", help="place the actors, and end")
    how.add_argument("--stop", action="store_true", help="remove the actors and the file, and end")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Place or remove the actors."""
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        say("heapwatch: Ray is not installed here: run this with the Python of the cluster", error=True)
        return 1
    from heapwatch.machine.ray_nodes import RayNodes

    try:
        nodes = RayNodes(ray, arguments.address)
    except ConnectionError as error:
        say(f"heapwatch: {error}", error=True)
        return 1
    try:
        file = arguments.targets or choose().folder / _FILE
    except OSError as error:
        raise UsageError(f"the folder of targets is not known, give --targets: {reason(error)}") from None
    if arguments.stop:
        removed = nodes.remove()
        file.unlink(missing_ok=True)
        say(f"{removed} exporters are removed", error=True)
        return 0
    return _follow(nodes, file, once=arguments.once)


def _follow(nodes: Any, file: Path, *, once: bool) -> int:
    from heapwatch.machine.ray_nodes import targets

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    before: list[str] | None = None
    while not ended.is_set():
        addresses = nodes.place()
        if addresses != before:
            make_private(file.parent)
            replace(file, json.dumps(targets(addresses), indent=2) + "\n", 0o644)
            say(f"{len(addresses)} nodes are watched: {', '.join(addresses)}; targets: {file}", error=True)
            before = addresses
        if once:
            return 0 if addresses else 1
        ended.wait(_EVERY_SECONDS)
    return 0
