"""Which lines the tests run, by folder, and which functions no test calls.

`python -m tests.coverage_by_folder [PYTEST ARGUMENTS]` measures every Python process that the tests start.
What runs in a container, in another environment, in a process that is killed, or under another trace function
does not count.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CODE = (
    "exporters/heapwatch",
    "alerting/heapwatch_receiver",
    "dashboards/heapwatch_dashboards",
    "dashboards/heapwatch_viewer",
    "stack/heapwatch_stack",
)
# Counting lines makes Python several times slower: the usual limit of a test is too short.
PACE = ("--numprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder", "--timeout", "900")
# They fail under coverage, which handles SIGTERM itself and lets a call hold its arguments longer.
LEFT_OUT = (
    "tests/exporters/cli/test_run.py::test_a_program_that_a_signal_ends_is_explained[15-143]",
    "tests/exporters/explain/test_inventory.py::test_the_program_may_resize_an_array_while_containers_are_read",
)
SETTINGS = """
[run]
branch = false
parallel = true
patch = subprocess, _exit
sigterm = true
data_file = {folder}/data
source = {source}
disable_warnings = no-data-collected,module-not-measured,couldnt-parse

[report]
exclude_also =
    if TYPE_CHECKING:
    \\.\\.\\.$
    if __name__ == .__main__.:
"""


@dataclass
class Folder:
    """Lines of a folder's modules."""

    modules: int = 0
    lines: int = 0
    run: int = 0


def measure(arguments: list[str], folder: Path) -> tuple[int, dict[str, Any]]:
    """Run the tests; return pytest's exit status and coverage's report of every module, measured or not."""
    settings = folder / "settings"
    source = ",".join(str(ROOT / part) for part in CODE)
    settings.write_text(SETTINGS.format(folder=folder, source=source), encoding="utf-8")
    coverage = [sys.executable, "-m", "coverage"]
    given = f"--rcfile={settings}"
    left_out = [f"--deselect={test}" for test in LEFT_OUT]
    tests = [*coverage, "run", given, "-m", "pytest", "-q", *PACE, *left_out, *arguments]
    status = subprocess.run(tests, cwd=ROOT, check=False).returncode
    print("reading what the processes of the tests ran", file=sys.stderr, flush=True)
    subprocess.run([*coverage, "combine", given, "--quiet"], cwd=ROOT, check=True)
    subprocess.run([*coverage, "json", given, "--quiet", f"-o{folder}/report.json"], cwd=ROOT, check=True)
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return status, report


def by_folder(files: Mapping[str, Any]) -> dict[str, Folder]:
    """Lines of each folder, run and in all."""
    folders: dict[str, Folder] = defaultdict(Folder)
    for name, file in files.items():
        folder = folders[str(Path(name).parent)]
        folder.modules += 1
        folder.lines += file["summary"]["num_statements"]
        folder.run += file["summary"]["covered_lines"]
    return dict(sorted(folders.items()))


def never_called(files: Mapping[str, Any]) -> Iterator[str]:
    """`module: function, function` of those whose first line never ran."""
    for name, file in sorted(files.items()):
        missing = [
            function
            for function, found in file["functions"].items()
            if function and found["summary"]["num_statements"] and not found["summary"]["covered_lines"]
        ]
        if missing:
            yield f"{name}: {', '.join(missing)}"


def main() -> int:
    """Print the table and the list; return pytest's exit status."""
    with tempfile.TemporaryDirectory() as folder:
        status, report = measure(sys.argv[1:], Path(folder))
    files = report["files"]
    print("| folder | modules | lines | run |\n|---|---:|---:|---:|")
    for name, found in by_folder(files).items():
        print(f"| `{name}` | {found.modules} | {found.lines} | {found.run / max(found.lines, 1):.0%} |")
    print("\nNo test calls:", *never_called(files), sep="\n- ")
    return status


if __name__ == "__main__":
    sys.exit(main())
