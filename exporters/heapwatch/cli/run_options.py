"""The options that `heapwatch run` passes to the process of the program."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from heapwatch.judge.verdict import Word
from heapwatch.runtime import environment


@dataclass(frozen=True)
class RunOptions:
    """The options, which travel as JSON in HEAPWATCH_RUN.

    Attributes:
        name: the trainer's name.
        port: for `/metrics`; 0 for any free one.
        record: file for `heapwatch report`.
        seconds: after which the program is ended.
        prints_json: whether the explanation is printed as JSON on stdout.
        is_quiet: whether only warnings and bad verdicts are printed.
        output: files for the explanation.
        fail_on: the mildest verdict that sets the exit code.
        python_path: PYTHONPATH of the user, which the program must find unchanged.

    """

    name: str
    port: int
    record: str | None
    seconds: float | None
    prints_json: bool
    is_quiet: bool
    output: tuple[str, ...]
    fail_on: Word | None
    python_path: str | None

    def environment(self, startup_folder: str) -> dict[str, str]:
        """Return the environment of the program; its interpreter imports from `startup_folder` first."""
        path = os.pathsep.join(filter(None, (startup_folder, self.python_path)))
        return {**os.environ, "PYTHONPATH": path, environment.RUN: json.dumps(asdict(self))}


def take_options() -> RunOptions:
    """Return the options of this process, and restore the environment of the user."""
    options = RunOptions(**json.loads(os.environ.pop(environment.RUN)))
    if options.python_path is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = options.python_path
    return options
