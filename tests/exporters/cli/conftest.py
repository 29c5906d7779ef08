import os
import re
import signal
import subprocess
import sys
import textwrap

import pytest

from heapwatch.cli.main import main

TRAINER = """
    import collections, os, sys, time
    import heapwatch

    bodies = collections.Counter(static=1, dynamic=155, agent=30, unknown=0)
    food = list(range(6))
    watch = heapwatch.start(
        "walker", port=0, profile="walker", token="correct-horse", interval=0.1, budget=0.5
    )
    watch.bodies(lambda: dict(bodies))
    watch.entities("food_sources", food)

    @watch.on_cleanup
    def trim(action):
        removed = {"bodies": bodies["dynamic"] - 155, "food": len(food) - 6}
        bodies["dynamic"] = 155
        del food[6:]
        return removed

    print(watch.exporter.server.port, flush=True)
    commands = os.fdopen(0, "rb", buffering=0)
    os.set_blocking(0, False)
    while True:
        command = commands.read(64)
        if command == b"leak":
            bodies["dynamic"] += 1061
            food += range(61)
        watch.step()
        time.sleep(0.005)
"""


class TrainerProcess:
    """A real trainer in its own process; `leak` makes it hold 1061 bodies and 61 food sources more."""

    def __init__(self):
        command = [sys.executable, "-c", textwrap.dedent(TRAINER)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.address = f"127.0.0.1:{int(self.process.stdout.readline())}"

    def leak(self):
        self.process.stdin.write(b"leak")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        self.process.stdin.close()
        self.process.stdout.close()


class Command:
    """A running `heapwatch`, whose lines are read one by one."""

    def __init__(self, *arguments, **environment):
        self.lines = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "heapwatch.cli.main", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | environment,
        )

    def until(self, pattern):
        """Read up to the line that matches."""
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if re.search(pattern, line):
                return line.strip()
        raise AssertionError(f"no line matches {pattern!r} in {self.lines}")

    def end(self, number=signal.SIGINT):
        """Stop it, and return its exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self):
        self.lines += self.process.communicate(timeout=60)[0].splitlines()
        return self.process.returncode

    @property
    def text(self):
        return "\n".join(self.lines)


@pytest.fixture(autouse=True)
def own_signals():
    """Commands that wait handle SIGTERM as Ctrl-C."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def run(capsys):
    """Runs `heapwatch` in this process: its exit code, what it printed and what it printed as an error."""

    def run(*arguments):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as ended:
            code = ended.code
        return (code, *capsys.readouterr())

    return run


@pytest.fixture
def trainer():
    running = TrainerProcess()
    yield running
    running.close()


@pytest.fixture
def heapwatch():
    """Starts `heapwatch`; ends what a test leaves running."""
    commands = []

    def start(*arguments, **environment):
        commands.append(Command(*arguments, **environment))
        return commands[-1]

    yield start
    for command in commands:
        if command.process.poll() is None:
            command.process.kill()
        command.process.communicate()
