"""Changes that break what the documents' rows claim: each must be noticed by a row.

`python -m tests.documents.mutation [WORD ...]` makes one change at a time in a copy of the tree, and runs
there the rows that should notice it. Exit status 1 if a change was not noticed, or a row fails without one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.documents.changes import CHANGES, Change
from tests.repository import REPOSITORY

SECONDS = 420.0  # for the rows of one change
SKIPPED = shutil.ignore_patterns(".git", ".heapwatch", "__pycache__", ".*_cache", "shared", "build")


def main(words: Sequence[str]) -> int:
    """Try the changes whose file, rows or texts have one of the words, or all."""
    chosen = [change for change in CHANGES if not words or any(word in str(change) for word in words)]
    unnoticed = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(REPOSITORY, copy, symlinks=True, ignore=SKIPPED)
        for number, change in enumerate(chosen, 1):
            noticed = tried(copy, change)
            print(f"{number}/{len(chosen)} {'noticed' if noticed else 'NOT NOTICED'}: {change}", flush=True)
            if not noticed:
                unnoticed.append(change)
        # A row that always fails would notice everything.
        rows = sorted({row for change in chosen for row in change.rows})
        healthy = passes(copy, rows, SECONDS * len(rows))
    print(f"{len(chosen)} changes, {len(unnoticed)} not noticed")
    if not healthy:
        print("the rows fail without a change")
    return int(bool(unnoticed) or not healthy)


def tried(copy: Path, change: Change) -> bool:
    """Whether a row fails when this change is made."""
    file = copy / change.file
    before = file.read_text(encoding="utf-8")
    if before.count(change.old) < 1:
        raise SystemExit(f"{change.file} has no {change.old!r}: tests/documents/changes.py is stale")
    file.write_text(before.replace(change.old, change.new), encoding="utf-8")
    try:
        return not passes(copy, change.rows, SECONDS)
    finally:
        file.write_text(before, encoding="utf-8")


def passes(copy: Path, rows: Sequence[str], seconds: float) -> bool:
    """Whether these rows pass in the copy."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/documents"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(copy / "exporters"), str(copy)]),
        "PYTHONDONTWRITEBYTECODE": "",
        "DOCUMENT_ROWS": "\n".join(rows),
    }
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1):  # no row was collected, or the change is no Python
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
