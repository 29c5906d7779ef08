"""`heapwatch explain`: what grows in a running trainer, a recorded run, any Python process, or the machine.

The command enters a process that does not run Heapwatch, and leaves it. If the workers of the process grow,
it enters one of them as well.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

from heapwatch.cli import above_zero, results
from heapwatch.cli.followed import DIED, DIED_MEANS, Ended
from heapwatch.cli.machine import explain_machine
from heapwatch.cli.sources import url_of
from heapwatch.cli.visits import Visits
from heapwatch.entering.entered_process import CannotEnter, process_of
from heapwatch.errors import Unreachable, UsageError
from heapwatch.explain.findings import Explanation, grows_in_workers, narrative
from heapwatch.explain.received import MOST_BYTES, explanation_of
from heapwatch.http.client import get_json
from heapwatch.machine.groups import Groups, Member, runs_python
from heapwatch.machine.workers import grown_most, with_names, worker_sizes
from heapwatch.measure.process.other_process import is_alive
from heapwatch.measure.process.process_tree import descendants
from heapwatch.recording.file import NoRecording, read_explanation
from heapwatch.text.terminal import say, say_json

_DEFAULT_SECONDS = 300.0
_LEAST_SECONDS = 60.0  # for a worker: a verdict takes less
_FILE_ENDINGS = (".jsonl", ".json", ".gz")
_EPILOG = f"""
A process without Heapwatch is entered, and left when the verdict is certain or the time is up. Its program
continues. Ctrl-C leaves at once and prints what is known.

exit codes:
  0   healthy, warm-up, filling, too early or growing
  2   leak or will not fit, or as --fail-on says
  3   no explanation: the trainer does not answer, the process cannot be entered, or the file has none
  {DIED}   {DIED_MEANS}
  64  the command line is wrong
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "explain",
        help="show what grows in a running trainer or a recorded run",
        description="Show what grows in a trainer, what holds it, and remedies.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "source",
        nargs="?",
        metavar="URL|FILE|NAME|PID",
        help="a trainer's address, a recording, a registered trainer (see `heapwatch top`) or a process; by"
        " default all processes of this user, of which one that grows most is entered",
    )
    parser.add_argument(
        "--all-users", action="store_true", help="without a source: look at processes of other users, too"
    )
    parser.add_argument(
        "--seconds",
        type=above_zero("a number of seconds", 1e9),
        default=_DEFAULT_SECONDS,
        metavar="N",
        help="longest stay in a process, in seconds (%(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print the JSON of GET /explain")
    results.add_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation, and return the exit code of its verdict."""
    try:
        result = _read(arguments)
    except Ended as end:
        say(f"heapwatch: {end}", error=True)
        return end.exit_code or 3
    except (CannotEnter, Unreachable, NoRecording) as error:
        say(f"heapwatch: {error}", error=True)
        return 3
    except KeyboardInterrupt:  # a visit ends with what is known; before it nothing is
        say("heapwatch: interrupted before a process was entered", error=True)
        return 3
    if arguments.json:
        say_json(result.document or result.explanation.as_json())
    else:
        say(*result.about, *narrative(result.explanation).split("\n"))
    code = results.conclude(result.explanation, arguments.output, arguments.fail_on)
    return DIED if result.has_died else code


class _Result(NamedTuple):
    """An explanation, and whether a process died that the command had entered.

    `document` is the JSON to print if it has more than the explanation. `about` are lines to print first.
    """

    explanation: Explanation
    has_died: bool = False
    document: dict[str, Any] | None = None
    about: tuple[str, ...] = ()


def _read(arguments: argparse.Namespace) -> _Result:
    source: str | None = arguments.source
    if source is None:
        if sys.platform != "linux":
            raise UsageError("without a source, explain needs Linux: give a PID, a name or an address")
        return _machine(arguments)
    if os.path.isfile(source):  # false for a name that is too long, where `Path.is_file` raises
        try:
            return _Result(explanation_of(read_explanation(Path(source))))
        except ValueError as error:
            raise NoRecording(f"{source} holds no explanation that can be shown: {error}") from None
    if "://" not in source and source.endswith(_FILE_ENDINGS):
        raise NoRecording(f"there is no file {source}")
    if url := url_of(source):
        return _Result(_ask(url))
    process = process_of(int(source))
    if not runs_python(process.pid) and (children := _started_by(process.pid)):
        say(f"process {source} does not run Python: these are the processes that it started", error=True)
        return _machine(arguments, lambda: _started_by(process.pid) if is_alive(process) else children)
    return _Result(*_visit(int(source), arguments.seconds))


def _started_by(pid: int) -> list[int]:
    """The processes below another one, without this command."""
    return [child for child in descendants(pid) if child != os.getpid()]


def _machine(
    arguments: argparse.Namespace, pids: Callable[[], Collection[int] | None] = lambda: None
) -> _Result:
    result = explain_machine(
        arguments.seconds,
        everyone=arguments.all_users,
        among=pids,
        show=lambda snapshot: None if arguments.json else say(*snapshot.lines()),
    )
    return _Result(result.explanation, result.has_died, result.as_json(), result.about())


def _ask(url: str) -> Explanation:
    try:
        return explanation_of(get_json(f"{url}/explain", max_bytes=MOST_BYTES))
    except ValueError as error:
        raise Unreachable(f"{url}/explain does not send an explanation: {error}") from None


def _visit(pid: int, seconds: float) -> tuple[Explanation, bool]:
    """Enter a process, explain it and leave it; if its workers grow, do the same with one of them.

    Raises:
        CannotEnter, Ended: there is no explanation.

    """
    groups = Groups(everyone=True)
    children, deadline, visits = worker_sizes(groups, pid), time.monotonic() + seconds, Visits()
    explanation = visits.explain(pid, seconds)
    if visits.is_interrupted:
        return explanation, visits.has_died

    def visit_worker(worker: int) -> Explanation:
        return visits.explain(worker, max(_LEAST_SECONDS, deadline - time.monotonic()))

    return with_workers(explanation, children, worker_sizes(groups, pid), visit_worker), visits.has_died


def with_workers(
    explanation: Explanation,
    before: dict[Member, int],
    after: dict[Member, int],
    visit: Callable[[int], Explanation],
) -> Explanation:
    """Add what grows in the workers to the explanation of their parent, if their memory grows.

    `before` and `after` are the sizes of the workers in bytes. `visit` explains one worker.
    """
    worker = grown_most(before, after)
    if worker is None or grows_in_workers(explanation) is None:
        return explanation
    try:
        worker_explanation = visit(worker.pid)
    except (CannotEnter, Ended) as error:
        say(f"heapwatch: cannot find what grows in the workers: {error}", error=True)
        return explanation
    return with_names(explanation, worker_explanation, worker)
