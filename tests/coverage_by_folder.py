"""Which lines the tests run, by folder, and which functions no test calls.

`python -m tests.coverage_by_folder [PYTEST ARGUMENTS]` measures every Python process that the tests start.
What runs in a container, in a process that is killed, or under another trace function does not count.
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
CODE = ("exporters/heapwatch", "alerting/receiver", "dashboards/generator", "dashboards/viewer", "stack")
SETTINGS = """
[run]
branch = false
parallel = true
patch = subprocess
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


def measure(arguments: list[str], folder: Path) -> dict[str, Any]:
    """Run the tests and return coverage's report of every module, measured or not."""
    settings = folder / "settings"
    source = ",".join(str(ROOT / part) for part in CODE)
    settings.write_text(SETTINGS.format(folder=folder, source=source), encoding="utf-8")
    coverage = [sys.executable, "-m", "coverage"]
    given = f"--rcfile={settings}"
    subprocess.run([*coverage, "run", given, "-m", "pytest", "-q", *arguments], cwd=ROOT, check=False)
    print("reading what the processes of the tests ran", file=sys.stderr, flush=True)
    subprocess.run([*coverage, "combine", given, "--quiet"], cwd=ROOT, check=True)
    subprocess.run([*coverage, "json", given, "--quiet", f"-o{folder}/report.json"], cwd=ROOT, check=True)
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return report


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
    """Print the table and the list."""
    with tempfile.TemporaryDirectory() as folder:
        files = measure(sys.argv[1:], Path(folder))["files"]
    print("| folder | modules | lines | run |\n|---|---:|---:|---:|")
    for name, found in by_folder(files).items():
        print(f"| `{name}` | {found.modules} | {found.lines} | {found.run / max(found.lines, 1):.0%} |")
    print("\nNo test calls:", *never_called(files), sep="\n- ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
