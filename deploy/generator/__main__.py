"""Write the Kustomize base, the Helm chart and the jsonnet mixin."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from deploy.generator import chart, kustomize, mixin
from deploy.generator.configuration import load
from deploy.generator.monitoring import ROOT

# Folder to what is in it, and who makes its files from a configuration and the dashboards.
MADE = {
    "kubernetes": ("a Kustomize base", kustomize.files),
    "chart": ("a Helm chart", chart.files),
    "mixin": ("a jsonnet mixin", mixin.files),
}


def files(configuration_file: Path, wanted: Iterable[str] = MADE) -> dict[str, str]:
    """Path below the output folder to content. Raises ValueError for a configuration that is wrong."""
    configuration = load(configuration_file)
    generated = ROOT / "dashboards" / "generated"
    boards = {path.name: path.read_text(encoding="utf-8") for path in sorted(generated.glob("*.json"))}
    return {
        f"{folder}/{name}": content
        for folder in wanted
        for name, content in MADE[folder][1](configuration, boards).items()
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
    parser.add_argument("--only", choices=MADE, help="write this alone (all)")
    options = parser.parse_args(arguments)
    wanted = [options.only] if options.only else list(MADE)
    try:
        written = files(options.configuration, wanted)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    for name, content in written.items():
        (options.output / name).parent.mkdir(parents=True, exist_ok=True)
        (options.output / name).write_text(content, encoding="utf-8")
    print(f"{options.output}/ has {', '.join(f'{MADE[folder][0]} ({folder})' for folder in wanted)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
