"""`heapwatch explain`: what grows in a running trainer, in a recorded run, or in any Python process.

A process without Heapwatch is entered and left; if its workers grow, one of them as well.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heapwatch.cli import above_zero, results
from heapwatch.cli.followed import DIED, DIED_MEANS, SOON_SECONDS, Ended, Followed
from heapwatch.cli.sources import url_of
from heapwatch.entering.agent import EXPLANATION
from heapwatch.entering.entered_process import CannotEnter, EnteredProcess, process_of
from heapwatch.errors import Unreachable
from heapwatch.explain.findings import Explanation, foremost, headline, narrative
from heapwatch.explain.received import MOST_BYTES, explanation_of
from heapwatch.explain.workers import Worker, grown_most, grows_in_workers, sizes, with_names
from heapwatch.http.client import get_json
from heapwatch.measure.process.other_process import name_of
from heapwatch.recording.file import NoRecording, read_explanation
from heapwatch.text.terminal import say, say_json

_DEFAULT_SECONDS = 300.0
_UNCERTAIN = ("too early", "growing")
_EVERY_SECONDS = 1.0
_PRINTED_SECONDS = 10.0
_WORKERS_SECONDS = 60.0
_LEAST_SECONDS = 60.0  # for a worker: a verdict takes less
_SILENT_SECONDS = 30.0  # a program may hold the interpreter's lock for long
_FILE_ENDINGS = (".jsonl", ".json", ".gz")
_DURING, _AFTER = "during the visit", "right after the visit"
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
        metavar="URL|FILE|NAME|PID",
        help="a trainer's address, a recording, a registered trainer (see `heapwatch top`) or a process",
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
        explanation, has_died = _read(arguments)
    except Ended as end:
        say(f"heapwatch: {end}", error=True)
        return end.exit_code or 3
    except (CannotEnter, Unreachable, NoRecording) as error:
        say(f"heapwatch: {error}", error=True)
        return 3
    if arguments.json:
        say_json(explanation.as_json())
    else:
        say(*narrative(explanation).split("\n"))
    code = results.conclude(explanation, arguments.output, arguments.fail_on)
    return DIED if has_died else code


def _read(arguments: argparse.Namespace) -> tuple[Explanation, bool]:
    """The explanation, and whether a process died that was entered for it."""
    source: str = arguments.source
    if os.path.isfile(source):  # false for a name that is too long, where `Path.is_file` raises
        try:
            return explanation_of(read_explanation(Path(source))), False
        except ValueError as error:
            raise NoRecording(f"{source} holds no explanation that can be shown: {error}") from None
    if "://" not in source and source.endswith(_FILE_ENDINGS):
        raise NoRecording(f"there is no file {source}")
    url = url_of(source)
    return (_ask(url), False) if url else _visit(int(source), arguments.seconds)


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
    children, until, visits = sizes(pid), time.monotonic() + seconds, _Visits()
    found = visits.explain(pid, seconds)
    if visits.is_interrupted:
        return found, visits.has_died

    def visit_worker(worker: int) -> Explanation:
        return visits.explain(worker, max(_LEAST_SECONDS, until - time.monotonic()))

    return with_workers(found, children, sizes(pid), visit_worker), visits.has_died


def begin_explaining(entered: EnteredProcess, name: str) -> None:
    """Make the process compute its explanation until it is left; CannotEnter if its explainer is off."""
    if not entered.ask("explain", name=name).get("enabled", True):
        raise CannotEnter(f"process {entered.pid} has HEAPWATCH_EXPLAIN=off in its environment")


class _Visits:
    """Visits of processes, one after the other.

    Attributes:
        has_died: whether one of them died meanwhile or right after that.
        is_interrupted: whether Ctrl-C or SIGTERM ended a visit.

    """

    def __init__(self) -> None:
        self.has_died = False
        self.is_interrupted = False
        signal.signal(signal.SIGTERM, signal.default_int_handler)

    def explain(self, pid: int, seconds: float) -> Explanation:
        """Enter, explain and leave a process.

        Raises:
            CannotEnter, Ended: there is no explanation.

        """
        process = process_of(pid)
        name = name_of(process)
        with EnteredProcess(pid) as entered, Followed(process, name) as followed:
            try:
                found = self._explained(entered, followed, name, seconds)
            except CannotEnter:
                if (end := followed.end(_DURING)) and end.exit_code == DIED:
                    self.has_died = True
                    raise end from None
                raise
            has_left = entered.leave()
            ended = followed.ended_within(SOON_SECONDS)
        if ended is None:
            say(
                f"process {pid} {'is left' if has_left else 'has not confirmed yet that it is left'}",
                error=True,
            )
        else:
            self.has_died |= ended.is_failure
            said = followed.said(ended, _AFTER if has_left else _DURING)
            if found is None:
                raise Ended(said, ended)
            say(said, error=True)
        if found is None:
            raise CannotEnter(f"process {pid} has sent no explanation")
        return found

    def _explained(
        self, entered: EnteredProcess, followed: Followed, name: str, seconds: float
    ) -> Explanation | None:
        until = time.monotonic() + seconds
        try:
            begin_explaining(entered, name)
        except KeyboardInterrupt:
            raise CannotEnter(f"process {entered.pid} has sent no explanation") from None
        try:
            say(f"process {entered.pid} ({name}) is entered, for {seconds:.0f} s at most", error=True)
            return _watch(entered, followed, until)
        except KeyboardInterrupt:
            self.is_interrupted = True
            return _latest(entered)


def _watch(entered: EnteredProcess, followed: Followed, until: float) -> Explanation | None:
    """The first certain explanation, else the last one before the process ends or the time is up."""
    found, seen_at, printed, printed_at = None, time.monotonic(), "", time.monotonic()
    has_ended = False
    while True:
        latest, now = _latest(entered), time.monotonic()
        if latest is not None and latest != found:
            found, seen_at = latest, now
            if found.verdict not in _UNCERTAIN or _is_of_workers(found):
                return found
            line = headline(found)
            if now - printed_at >= _PRINTED_SECONDS and line != printed:
                say(line, error=True)
                printed, printed_at = line, now
        if has_ended or now >= until or now - seen_at > _SILENT_SECONDS:
            return found
        has_ended = followed.ended_within(_EVERY_SECONDS) is not None


def _is_of_workers(found: Explanation) -> bool:
    """Whether the growth is that of its workers: entering one of them gives an earlier and better result."""
    first = foremost(found)
    return first is not None and first.kind == "worker" and found.seconds >= _WORKERS_SECONDS


def _latest(entered: EnteredProcess) -> Explanation | None:
    document = entered.latest(EXPLANATION)
    if document is None:
        return None
    try:
        return explanation_of(document)
    except ValueError as error:
        raise CannotEnter(f"process {entered.pid} sends no explanation: {error}") from None


def with_workers(
    found: Explanation, before: dict[int, int], after: dict[int, int], visit: Callable[[int], Explanation]
) -> Explanation:
    """The explanation of the parent with the name of what grows in its workers, if their memory grows.

    `before` and `after` are the bytes of its workers by process id; `visit` explains one of them.
    """
    first = grown_most(before, after)
    if first is None or grows_in_workers(found) is None:
        return found
    pid, alike = first
    try:
        inside = visit(pid)
    except (CannotEnter, Ended) as error:
        say(f"heapwatch: cannot find what grows in the workers: {error}", error=True)
        return found
    return with_names(found, inside, Worker(pid, alike, len(after)))
