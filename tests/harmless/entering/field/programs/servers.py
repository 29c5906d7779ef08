"""Servers that wait for requests, and a client that makes one every few seconds: `servers KIND`."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

from tests.harmless.entering.field.programs.apps import ANSWER
from tests.harmless.entering.field.programs.waiting import PATIENCE_SECONDS, children, numbered, wait
from tests.support.ports import free_port

_APPS = "tests.harmless.entering.field.programs.apps"
_UVICORN = f"uvicorn {_APPS}:asgi --log-level warning --port {{}}"
COMMANDS = {
    "uvicorn": _UVICORN,
    "uvicorn-workers": f"{_UVICORN} --workers 2",
    "gunicorn": f"gunicorn {_APPS}:flask() --workers 2 --bind 127.0.0.1:{{}}",
    "flask": f"flask --app {_APPS}:flask run --debug --port {{}}",
    "tensorboard": "tensorboard.main --logdir . --port {}",
}
# Ends itself by the signal that told it to end.
_BY_SIGNAL = "uvicorn"


def main(kind: str) -> None:
    port = free_port()
    command = [sys.executable, "-m", *COMMANDS[kind].format(port).split()]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def work() -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE_SECONDS) as response:
            assert response.status == 200
            assert response.read() == ANSWER or kind == "tensorboard"

    until = time.monotonic() + PATIENCE_SECONDS
    while server.poll() is None and time.monotonic() < until:
        with suppress(OSError):
            work()
            break
        time.sleep(0.2)
    wait({"client": os.getpid(), "server": server.pid, **numbered("child", children(server.pid))}, work)
    server.send_signal(signal.SIGTERM)
    assert server.wait(PATIENCE_SECONDS) == (-signal.SIGTERM if kind == _BY_SIGNAL else 0)


if __name__ == "__main__":
    main(sys.argv[1])
