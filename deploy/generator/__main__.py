"""Write the Kustomize base, the Helm chart and the jsonnet mixin."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from deploy.generator import chart, kustomize, mixin
from deploy.generator.configuration import load
from deploy.generator.monitoring import ROOT

MADE = {"kubernetes": "a Kustomize base", "chart": "a Helm chart", "mixin": "a jsonnet mixin"}


def files(configuration_file: Path) -> dict[str, str]:
    """Path below the output folder to content. Raises ValueError for a configuration that is wrong."""
    configuration = load(configuration_file)
    generated = ROOT / "dashboards" / "generated"
    boards = {path.name: path.read_text(encoding="utf-8") for path in sorted(generated.glob("*.json"))}
    folders = {
        "kubernetes": kustomize.files(configuration, boards),
        "chart": chart.files(configuration, boards, _version()),
        "mixin": mixin.files(configuration, boards),
    }
    return {
        f"{folder}/{name}": content
        for folder, written in folders.items()
        for name, content in written.items()
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
        found = files(options.configuration)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    written = {name: text for name, text in found.items() if name.partition("/")[0] in wanted}
    for name, content in written.items():
        (options.output / name).parent.mkdir(parents=True, exist_ok=True)
        (options.output / name).write_text(content, encoding="utf-8")
    print(f"{options.output}/ has {', '.join(f'{MADE[folder]} ({folder})' for folder in wanted)}")
    return 0


def _version() -> str:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    assert found, "pyproject.toml has no version"
    return found[1]


if __name__ == "__main__":
    sys.exit(main())
