"""Phase, count and start of a leak as the report of real runs tells them, against what was switched on.

`python -m tests.documents.answers [--runs 10] [--at-once 5] [--after 24]` runs the trading example so often.
In each run it switches the leak of environments on, in another generation. It prints a table; exit status 1
if an answer is wrong. Several runs at once keep the machine busy.
"""

import argparse
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from examples.common.leaks import leak_file, write
from heapwatch.report.findings import Report
from tests.documents.example import Example

RATE = 200.0  # steps a second, of which a generation has 400
A_GENERATION = 30  # environments
MINUTE = 60.0
OFF = 0.25  # of the count
SECONDS = 3600.0  # that a part of a run may take
HEADER = f"{'run':>3} {'load':>5}  {'phase':<20} {'environments':>12} {'began':>7} {'told':>5}  answer"


class Answer(NamedTuple):
    """What the report of a run says, and when the leak began."""

    phase: str
    each: float
    began: int
    since: int

    @property
    def is_right(self) -> bool:
        """Whether phase and count are right, and the start to a generation."""
        right = self.phase == "evaluate_population" and abs(self.since - self.began) <= 1
        return right and abs(self.each - A_GENERATION) <= OFF * A_GENERATION


def answer(number: int, after: int) -> Answer:
    """Run the example, have it leak after a few generations, and read its report `after` generations later.

    Raises:
        AssertionError: it took too long.

    """
    with TemporaryDirectory() as folder:
        return _answer(Path(folder), number, after)


def _answer(folder: Path, number: int, after: int) -> Answer:
    example = Example("erl_trading", folder, f"--rate={RATE:g}", f"--seed={number}")
    try:
        example.until(lambda: generations(example) >= 5 + number % 7, SECONDS)
        write(leak_file("erl_trading", folder), {"environments": A_GENERATION * MINUTE * RATE / 400})
        example.until(lambda: "leaks on, units per minute: {" in example.log(), SECONDS)
        began = generations(example) + 2  # what is due in one generation is made in the next evaluation
        example.until(lambda: generations(example) >= began + after, SECONDS)
        report = example.report()
    finally:
        example.stop()
    return _told(report, began)


def generations(example: Example) -> int:
    """Generations that are done, as the log tells them."""
    return max(map(int, re.findall(r"Memory Report - Generation (\d+)", example.log())), default=0)


def _told(report: Report, began: int) -> Answer:
    if report.finding is None:
        return Answer(f"none: {report.verdict}", 0.0, began, 0)
    found = report.finding.objects.get("TradingEnvironment")
    return Answer(report.finding.phase, found.per_cycle if found else 0.0, began, report.finding.since)


def main() -> int:
    """Print the table; 1 when an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--after", type=int, default=24, help="generations from the leak to the report")
    options = parser.parse_args()
    print(HEADER, flush=True)
    wrong = 0
    with ThreadPoolExecutor(options.at_once) as pool:
        running = {pool.submit(answer, run, options.after): run for run in range(1, options.runs + 1)}
        for done in as_completed(running):
            found = done.result()
            wrong += not found.is_right
            print(
                f"{running[done]:>3} {os.getloadavg()[0]:>5.1f}  {found.phase:<20} {found.each:>+12.1f} "
                f"{found.began:>7} {found.since:>5}  {'right' if found.is_right else 'WRONG'}",
                flush=True,
            )
    print(f"{options.runs - wrong} of {options.runs} right")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
