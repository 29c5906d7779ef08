"""Changes that break what the documents' rows claim: each must be noticed by a row.

`python -m tests.documents.mutation [--results FILE] [--at-once N] [WORD ...]` makes each change in a copy of
the tree, and runs there the rows that should notice it, without the change and with it. It prints each
result, and how the row failed. Exit status 1 if a change was not noticed, or a row fails without any.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.documents.changes import CHANGES, Change
from tests.support.repository import REPOSITORY, SOURCES, python_path

NOTICED = "noticed"
AT_ONCE = 8  # they mostly wait
SECONDS = 3600.0  # for the rows of a change
# Loaded once, and not for each change: most of the time that a run takes to begin.
LOADED = ("matplotlib.pyplot", "torch")
FORKED = get_context("fork")
SKIPPED = shutil.ignore_patterns(".git", ".heapwatch", ".*_cache", "shared", "build")


def main() -> int:
    """Try the changes whose file, rows or texts have one of the words, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--results", type=Path, help="kept here; what was noticed before is not tried again")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="changes that are tried at a time")
    options = parser.parse_args()
    words = options.words or [""]
    chosen = [change for change in CHANGES if any(word in str(change) for word in words)]
    kept = options.results or Path(os.devnull)
    known = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    left = [change for change in chosen if f"{NOTICED}: {change}" not in known]
    counts = Counter({NOTICED: len(chosen) - len(left)})
    for name in LOADED:
        import_module(name)
    with ProcessPoolExecutor(options.at_once, FORKED) as pool:
        running = {pool.submit(tried, change): change for change in left}
        for done in as_completed(running):
            result, failure = done.result()
            counts[result] += 1
            reported = f"{result}: {running[done]}\n    {failure}"
            print(reported, flush=True)
            with kept.open("a", encoding="utf-8") as results:
                results.write(f"{reported}\n")
    print(f"{len(chosen)} changes: {', '.join(f'{count} {result}' for result, count in counts.items())}")
    return int(counts[NOTICED] < len(chosen))


def tried(change: Change) -> tuple[str, str]:
    """Whether the rows pass, and one fails when this change is made; and how a row failed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(REPOSITORY, copy, symlinks=True, ignore=SKIPPED)
        file = copy / change.file
        before = file.read_text(encoding="utf-8")
        if change.old not in before:
            raise SystemExit(f"{change.file} has no {change.old!r}: tests/documents/changes.py is stale")
        began = time.monotonic()
        if failure := failed(copy, change.rows, {}):
            return "FAILS WITHOUT IT", failure
        file.write_text(before.replace(change.old, change.new), encoding="utf-8")
        # What did not come in twice the time does not come.
        enough = f"{30 + 2 * (time.monotonic() - began):.0f}"
        failure = failed(copy, change.rows, {"DOCUMENT_SECONDS": enough})
        if "NotStarted" in failure:
            return "DID NOT START", failure
        return (NOTICED if failure else "NOT NOTICED"), failure


def failed(copy: Path, rows: Sequence[str], environment: Mapping[str, str]) -> str:
    """How one of these rows fails in the copy; empty when all pass."""
    output = copy / "output"
    child = FORKED.Process(target=_tried, args=(copy, rows, environment, output))
    child.start()
    child.join(SECONDS)
    child.kill()
    child.join()
    if child.exitcode == 0:
        return ""
    said = output.read_text(errors="replace")
    if child.exitcode != 1:  # no row was collected, or the change is no Python
        raise SystemExit(said[-4000:])
    return re.findall(r"(?m)^E +(.+)$", said)[0]


def _tried(copy: Path, rows: Sequence[str], environment: Mapping[str, str], output: Path) -> None:
    """Run these rows in this process, with nothing loaded of the tree that it came from."""
    with output.open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    own = {path.name for folder in (*(copy / name for name in SOURCES), copy) for path in folder.iterdir()}
    for name in [name for name in sys.modules if name.partition(".")[0] in own]:
        del sys.modules[name]
    sys.path[:0] = python_path(copy).split(os.pathsep)
    os.environ |= environment | {
        "PYTHONPATH": python_path(copy),
        "PYTHONDONTWRITEBYTECODE": "",
        "DOCUMENT_ROWS": "\n".join(rows),
    }
    os.chdir(copy)
    sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "tests/documents"]))


if __name__ == "__main__":
    sys.exit(main())
