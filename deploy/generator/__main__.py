"""Write the Kustomize base and the Helm chart."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from deploy.generator import chart, kustomize
from deploy.generator.configuration import load
from deploy.generator.monitoring import ROOT

# Folder to who makes its files from a configuration and the dashboards.
MADE = {"kubernetes": kustomize.files, "chart": chart.files}


def files(configuration_file: Path) -> dict[str, str]:
    """Path below the output folder to content. Raises ValueError for a configuration that is wrong."""
    configuration = load(configuration_file)
    generated = ROOT / "dashboards" / "generated"
    boards = {path.name: path.read_text(encoding="utf-8") for path in sorted(generated.glob("*.json"))}
    return {
        f"{folder}/{name}": content
        for folder, made in MADE.items()
        for name, content in made(configuration, boards).items()
    }


def main(arguments: list[str] | None = None) -> int:
    """Returns 0; 2 for a configuration that is wrong."""
    parser = argparse.ArgumentParser(prog="python -m deploy.generator", description=__doc__)
    parser.add_argument(
        "--configuration",
        type=Path,
        default=ROOT / "deploy" / "configuration.yml",
        help="(default: %(default)s)",
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build" / "deploy", help="folder (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        written = files(options.configuration)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    for name, content in written.items():
        (options.output / name).parent.mkdir(parents=True, exist_ok=True)
        (options.output / name).write_text(content, encoding="utf-8")
    print(f"{options.output}/ has a Kustomize base (kubernetes) and a Helm chart (chart)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
