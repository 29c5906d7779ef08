"""Starting an exporter inside another process: what grows in it is then found from inside.

Python 3.14 runs a file in another process of the same version when it is asked to (`sys.remote_exec`), at the
next safe point of that process's main thread.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heapwatch.runtime.own_files import read_json

_WAIT_SECONDS = 30.0
_POLL_SECONDS = 0.05
_NEEDED = (3, 14)
_REMOTE_EXEC = getattr(sys, "remote_exec", None)

# Runs in the other process, which imports this Heapwatch if it has none of its own.
_SCRIPT = """\
def _heapwatch_begin():
    import json, os, sys
    asked = json.loads({asked!r})
    result = {{}}
    try:
        sys.path.extend(asked["path"])
        from heapwatch import start
        search = asked["port"] is None
        watch = start(asked["name"], host=asked["host"], port=asked["port"], port_search=search)
        result["url"] = watch.server.url
    except BaseException as error:
        result["error"] = f"{{type(error).__name__}}: {{error}}"
    temporary = asked["answer"] + ".part"
    with open(temporary, "w") as file:
        json.dump(result, file)
    os.replace(temporary, asked["answer"])
_heapwatch_begin()
del _heapwatch_begin
"""


class CannotInject(Exception):
    """Nothing can be started inside the process; the message says why."""


def inject(
    pid: int,
    name: str,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    remote_exec: Callable[[int, str], object] | None = _REMOTE_EXEC,
    wait_seconds: float = _WAIT_SECONDS,
) -> str:
    """Start an exporter inside a process, and return its address.

    Args:
        pid: the process.
        name: of the trainer.
        host: the address to listen on.
        port: None takes a free one from the default on.
        remote_exec: `sys.remote_exec`, or a substitute in tests.
        wait_seconds: how long to wait for the process to run Python.

    Raises:
        CannotInject: this Python is too old, or the process runs another version or no Python, refuses, or
            does not answer.

    """
    if remote_exec is None:
        version = ".".join(map(str, sys.version_info[:2]))
        needed = ".".join(map(str, _NEEDED))
        raise CannotInject(f"this is Python {version}; it takes {needed} here and in the process")
    with tempfile.TemporaryDirectory(prefix="heapwatch-") as folder:
        answer = Path(folder, "answer.json")
        asked = {"name": name, "host": host, "port": port, "answer": str(answer), "path": _own_path()}
        script = Path(folder, "begin.py")
        script.write_text(_SCRIPT.format(asked=json.dumps(asked)), encoding="utf-8")
        try:
            remote_exec(pid, str(script))
        except (OSError, RuntimeError, ValueError) as error:
            raise CannotInject(f"process {pid} does not run code from outside: {error}") from None
        result = _answer(answer, wait_seconds)
    if result is None:
        raise CannotInject(f"process {pid} has not run Python code for {wait_seconds:.0f} s")
    if "url" not in result:
        raise CannotInject(f"process {pid} cannot start Heapwatch: {result.get('error')}")
    return str(result["url"])


def _own_path() -> list[str]:
    """The folders from which this package and its dependencies are imported."""
    import prometheus_client
    import psutil

    folders = [Path(__file__).parents[1], Path(psutil.__file__).parents[1]]
    folders.append(Path(prometheus_client.__file__).parents[1])
    return list(dict.fromkeys(map(str, folders)))


def _answer(path: Path, seconds: float) -> dict[str, Any] | None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if path.exists():
            try:
                return dict(read_json(path))
            except (OSError, TypeError, ValueError) as error:
                raise CannotInject(f"the process does not answer as Heapwatch does: {error}") from None
        time.sleep(_POLL_SECONDS)
    return None
