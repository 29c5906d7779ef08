"""A stack as trainers see it: its folder, its token and something that answers where its supervisor would."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

from heapwatch import stacks
from heapwatch.stacks import Stack


class StandingStack:
    def __init__(self, folder: Path, token: str = "the-stacks-token") -> None:
        (folder / "secrets").mkdir(parents=True)
        self.token_file = folder / "secrets" / "token"
        self.token_file.write_text(f"{token}\n")
        self.token_file.chmod(0o600)
        self.targets = folder / "targets"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.stack = Stack(
            state=str(folder),
            targets=str(self.targets),
            token_file=str(self.token_file),
            answers_at=f"tcp:127.0.0.1:{self._listener.getsockname()[1]}",
        )
        stacks.announce(self.stack)

    def in_containers(self) -> None:
        self.stack = replace(self.stack, targets="")
        stacks.announce(self.stack)

    def die(self) -> None:
        self._listener.close()

    def down(self) -> None:
        stacks.withdraw(Path(self.stack.state))
        self.die()
