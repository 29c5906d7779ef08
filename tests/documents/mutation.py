"""Changes that break what the documents' rows claim: each must be noticed by a row.

`python -m tests.documents.mutation [WORD ...]` makes each change in a copy of the tree, and runs there the
rows that should notice it, without the change and with it. Exit status 1 if one was not noticed, or a row
fails without any.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.documents.changes import CHANGES, Change
from tests.repository import REPOSITORY

NOTICED = "noticed"
AT_ONCE = 8  # they mostly wait
SKIPPED = shutil.ignore_patterns(".git", ".heapwatch", "__pycache__", ".*_cache", "shared", "build")


def main(words: Sequence[str]) -> int:
    """Try the changes whose file, rows or texts have one of the words, or all."""
    chosen = [change for change in CHANGES if not words or any(word in str(change) for word in words)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = Counter(pool.map(tried, chosen))
    print(f"{len(chosen)} changes: {', '.join(f'{count} {result}' for result, count in results.items())}")
    return int(results.keys() != {NOTICED})


def tried(change: Change) -> str:
    """Whether the rows pass, and one fails when this change is made; printed, too."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(REPOSITORY, copy, symlinks=True, ignore=SKIPPED)
        file = copy / change.file
        before = file.read_text(encoding="utf-8")
        if before.count(change.old) < 1:
            raise SystemExit(f"{change.file} has no {change.old!r}: tests/documents/changes.py is stale")
        began = time.monotonic()
        result = "FAILS WITHOUT IT"
        if passes(copy, change.rows):
            file.write_text(before.replace(change.old, change.new), encoding="utf-8")
            # What did not come in twice the time does not come.
            enough = f"{30 + 2 * (time.monotonic() - began):.0f}"
            result = "NOT NOTICED" if passes(copy, change.rows, DOCUMENT_SECONDS=enough) else NOTICED
    print(f"{result}: {change}", flush=True)
    return result


def passes(copy: Path, rows: Sequence[str], **environment: str) -> bool:
    """Whether these rows pass in the copy."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/documents"]
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(copy / "exporters"), str(copy)]),
        "PYTHONDONTWRITEBYTECODE": "",
        "DOCUMENT_ROWS": "\n".join(rows),
    }
    done = subprocess.run(
        command,
        cwd=copy,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    if done.returncode not in (0, 1):  # no row was collected, or the change is no Python
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
