"""Many fake trainers in one process, on free ports that it prints; each as `fake_trainer`.

python fake_fleet.py COUNT JOURNAL MODE TOKEN
"""

import json
import sys
import threading
from pathlib import Path

from fake_trainer import Handler, Server, Trainer

from heapwatch.http.signing import Verifier


def main(count: int, journal: str, mode: str, token: str) -> None:
    ports = []
    for number in range(count):
        own = {
            "trainer": Trainer(Path(f"{journal}-{number}"), Path(mode)),
            "token": token,
            "verifier": Verifier(),
        }
        server = Server(("127.0.0.1", 0), type("Handler", (Handler,), own))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ports.append(server.server_address[1])
    print(json.dumps(ports), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
