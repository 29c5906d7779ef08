"""Write the Helm chart."""

from __future__ import annotations

import argparse
from pathlib import Path

from deploy.generator import chart
from deploy.generator.monitoring import ROOT


def main(arguments: list[str] | None = None) -> None:
    """Write every file of the chart."""
    parser = argparse.ArgumentParser(prog="python -m deploy.generator", description=__doc__)
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "build" / "deploy" / "chart",
        help="folder (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    for name, content in chart.files().items():
        (options.output / name).parent.mkdir(parents=True, exist_ok=True)
        (options.output / name).write_text(content, encoding="utf-8")
    print(f"{options.output} is a Helm chart")


if __name__ == "__main__":
    main()
