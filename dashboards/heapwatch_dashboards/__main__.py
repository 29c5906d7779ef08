"""Write the dashboards, or check that the written ones are up to date."""

import argparse
import json
import sys
from pathlib import Path

from . import boards

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ROOT / "dashboards" / "generated"


def files() -> dict[str, str]:
    """File name to content of every generated dashboard."""
    return {
        f"{dashboard.uid}.json": json.dumps(dashboard.render(), indent=2, sort_keys=True) + "\n"
        for dashboard in boards.ALL
    }


def main(arguments: list[str] | None = None) -> int:
    """Returns 0, or 1 when `--check` finds files that differ from what would be written."""
    parser = argparse.ArgumentParser(prog="python -m heapwatch_dashboards", description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=GENERATED, help="folder of the JSON (default: %(default)s)"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail when a file is missing, stale or left over"
    )
    options = parser.parse_args(arguments)
    if options.check:
        return check(options.output, files())
    options.output.mkdir(parents=True, exist_ok=True)
    for name, content in files().items():
        (options.output / name).write_text(content)
    return 0


def check(folder: Path, wanted: dict[str, str]) -> int:
    """Name every file that is not as it would be written."""
    present = {path.name: path.read_text() for path in sorted(folder.iterdir())} if folder.is_dir() else {}
    differing = sorted(
        name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name)
    )
    for name in differing:
        print(f"{folder / name} is not what `python -m heapwatch_dashboards` writes", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
