"""Finds the stack for a trainer, and registers the trainer in the targets folder of the stack."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from heapwatch import discovery, stacks
from heapwatch.http.guards import checked_token, find_token
from heapwatch.runtime.environment import say_once
from heapwatch.runtime.own_files import read_text
from heapwatch.stacks import Stack


class Choice(NamedTuple):
    """The folder for the target, and the stack that reads it (None: none that runs)."""

    folder: Path
    stack: Stack | None


def choose() -> Choice:
    """Find the stack to join, and the folder that it reads.

    HEAPWATCH_STATE names the stack, HEAPWATCH_TARGETS_DIR the folder. Without them it is the default stack of
    this user, see `stacks.default_state`: no other that happens to run. A folder of the user where none runs.

    Raises:
        OSError: the user has no home folder.

    """
    folder, state = _named("HEAPWATCH_TARGETS_DIR"), _named("HEAPWATCH_STATE")
    stack = stacks.running_in(state or stacks.default_state())
    if folder is not None:
        is_read = stack is not None and stacks.same_folder(stack.targets, folder)
        return Choice(folder, stack if is_read else None)
    if stack is not None and stack.targets:
        return Choice(Path(stack.targets), stack)
    return Choice(state.absolute() / "targets" if state else stacks.user_folder() / "targets", stack)


def folders() -> list[Path]:
    """The folders in which a trainer of this user may have its target: with a stack, before or after it.

    Raises:
        OSError: the user has no home folder.

    """
    chosen = choose().folder
    if os.environ.get("HEAPWATCH_TARGETS_DIR") or os.environ.get("HEAPWATCH_STATE"):
        return [chosen]
    return list(dict.fromkeys([chosen, stacks.default_state() / "targets", stacks.user_folder() / "targets"]))


def token_of(stack: Stack) -> str:
    """Return the token that the stack's receiver sends.

    Raises:
        OSError: its file cannot be read, or other users could read it.
        ValueError: it cannot travel in a header.

    """
    return checked_token(read_text(stack.token_file, private=True).strip())


def _named(name: str) -> Path | None:
    path = os.environ.get(name)
    return stacks.expanded(path) if path else None


class Registration:
    """Keeps a server's target where the chosen stack reads it, across restarts of stacks.

    A wrong setting in the environment is logged once and disables cleanups or the stack, never training.

    The environment names the stack, see `choose`. Without a token of the trainer's own code it is that of the
    environment or of the stack.

    Raises:
        ValueError: the token given cannot travel in a header.

    """

    def __init__(self, host: str, port: int, *, token: str | None = None, trainer: str = "") -> None:
        self.stack: Stack | None = None
        self._host = host
        self._port = port
        self._trainer = trainer
        self._target: discovery.TargetFile | None = None
        self._own_token = find_token(token) if token is not None else self._token_of_environment()
        self.token = self._own_token

    @property
    def folder(self) -> Path | None:
        """Where the target is; None where it could not be written."""
        return None if self._target is None else self._target.path.parent

    def refresh(self) -> bool:
        """Find the stack, write the target there and use its token; returns whether it is a new one."""
        before = self.stack
        try:
            choice = choose()
            self.stack = choice.stack
            # A stack that is gone may come back: the target waits for it where it is.
            stays = choice.stack is None and self._target is not None and self._target.path.exists()
            self._leave_target(self._target.path.parent if stays and self._target else choice.folder)
        except Exception as error:  # psutil has errors of its own
            say_once(f"no stack will find this trainer: {error}")
        if self.stack is not None:
            self._take_token(self.stack)
        return (self.stack and self.stack.state) != (before and before.state)

    def describe(self) -> str:
        """One sentence: whether a stack scrapes this trainer, or what to do next."""
        stack = self.stack
        if stack is None:
            return "no stack scrapes it, `heapwatch up` starts one"
        if not stack.targets:
            return "your stack runs in containers and does not reach this address, see docs/running.md"
        if self.folder is None:
            return f"the stack in {stack.state} cannot see it, as its target cannot be written"
        unable = "" if self.token else ", but cannot ask it to clean up: it has no token"
        return f"the stack in {stack.state} scrapes it{unable}"

    def remove(self, failure: str = "") -> None:
        """Remove the target; with a `failure`, the trainer is kept as lost, and alerted. Idempotent."""
        target, self._target = self._target, None
        if target is not None:
            target.remove(failure)

    def _leave_target(self, folder: Path) -> None:
        if self.folder != folder:
            self.remove()
            discovery.sweep(folder)
        elif self._target is not None and self._target.path.exists():
            if self._target.renew():
                discovery.sweep(folder)
            return
        target = discovery.TargetFile(folder, self._host, self._port, trainer=self._trainer)
        target.write()
        self._target = target

    def _take_token(self, stack: Stack) -> None:
        try:
            token = token_of(stack)
        except (OSError, ValueError) as error:
            say_once(f"the token of the stack in {stack.state} cannot be used: {error}")
            return
        if self._own_token is None:
            self.token = token
        elif self._own_token != token:
            say_once(f"the stack in {stack.state} has another token: its cleanups are refused")

    def _token_of_environment(self) -> str | None:
        try:
            return find_token()
        except (OSError, ValueError) as error:
            say_once(f"HEAPWATCH_TOKEN or HEAPWATCH_TOKEN_FILE cannot be used: {error}")
            return None
