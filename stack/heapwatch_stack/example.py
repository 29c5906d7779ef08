"""The trainer of the demonstration: the stack's example, or a small one that is started for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from heapwatch_stack import health
from heapwatch_stack.compose import ComposeStack
from heapwatch_stack.errors import StackError
from heapwatch_stack.native import NativeStack
from heapwatch_stack.services import environment
from heapwatch_stack.settings import Settings

ENDS_WITHIN = 20
SWITCHED_WITHIN = 120


class Example(Protocol):
    """A running trainer whose leaks can be switched on and off."""

    instance: str
    port: int

    def leak(self, rates: Mapping[str, float]) -> None:
        """Set the units per minute of each leak; an empty mapping switches all off."""


class StacksOwn:
    """The example trainer that runs in the stack of a clone."""

    def __init__(self, stack: NativeStack | ComposeStack, settings: Settings) -> None:
        self.instance = stack.trainer_target
        self.port = settings.ports.trainer
        self._stack = stack
        self._checkout = settings.checkout

    def leak(self, rates: Mapping[str, float]) -> None:
        """Call the command of the example."""
        arguments = [f"{name}={rate:g}" for name, rate in rates.items()] or ["off"]
        command = self._stack.leak(*arguments)
        try:
            done = subprocess.run(
                command,
                cwd=self._checkout,
                text=True,
                capture_output=True,
                check=False,
                timeout=SWITCHED_WITHIN,
            )
        except subprocess.TimeoutExpired:
            raise StackError(f"the leak was not switched within {SWITCHED_WITHIN} s") from None
        if done.returncode != 0:
            raise StackError(f"the leak could not be switched: {(done.stderr or done.stdout).strip()}")


class Small:
    """`heapwatch_stack.trainer` as a child process."""

    def __init__(self, settings: Settings) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "heapwatch_stack.trainer"],
            env={**os.environ, **environment(settings)},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline().strip()
        if not said.isdigit():
            self.end()
            raise StackError(f"the demonstration's trainer did not start: {said or 'no output'}")
        self.port = int(said)
        self.instance = f"{settings.host}:{self.port}"

    def leak(self, rates: Mapping[str, float]) -> None:
        """Write the rates to its standard input."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(dict(rates)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise StackError("the demonstration's trainer has ended") from None

    def end(self) -> None:
        """Close its input, which ends it; kill it if it does not end."""
        try:
            self._process.communicate(timeout=ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def example(
    stack: NativeStack | ComposeStack, settings: Settings, rests: Callable[[Example], bool]
) -> Iterator[Example]:
    """The stack's example if it has one, else a small trainer that ends with the context.

    Args:
        stack: the stack that watches it.
        settings: its settings.
        rests: whether the receiver leaves a trainer alone after a cleanup. Then a small one is started, where
            the stack can see it: outside of containers.

    """
    if settings.checkout or isinstance(stack, ComposeStack):
        own = StacksOwn(stack, settings)
        if isinstance(stack, ComposeStack) or not rests(own):
            yield own
            return
    small = Small(settings)
    try:
        health.wait_scraped(settings, {"the demonstration's trainer": small.instance})
        yield small
    finally:
        small.end()
