"""Write the Kubernetes objects and the Helm chart, or check that the written ones are up to date."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from deploy.generator import chart, kustomize
from deploy.generator.configuration import load
from deploy.generator.monitoring import ROOT

DEPLOY = ROOT / "deploy"


def wanted(configuration_file: Path) -> dict[str, str]:
    """Path below the output folder to content. Raises ValueError for a configuration that is wrong."""
    configuration = load(configuration_file)
    dashboards = [path.name for path in (DEPLOY / "kubernetes" / kustomize.DASHBOARDS).glob("*.yaml")]
    folders = {
        "kubernetes": kustomize.files(configuration, dashboards),
        "chart": chart.files(configuration, _version()),
    }
    return {
        f"{folder}/{name}": content for folder, files in folders.items() for name, content in files.items()
    }


def main(arguments: list[str] | None = None) -> int:
    """Returns 0; 1 when `--check` finds files that differ, 2 for a configuration that is wrong."""
    parser = argparse.ArgumentParser(prog="python -m deploy.generator", description=__doc__)
    parser.add_argument(
        "--configuration", type=Path, default=DEPLOY / "configuration.yml", help="(default: %(default)s)"
    )
    parser.add_argument("--output", type=Path, default=DEPLOY, help="folder (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    options = parser.parse_args(arguments)
    try:
        files = wanted(options.configuration)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    if options.check:
        stale = [name for name, content in files.items() if _read(options.output / name) != content]
        for name in stale:
            print(f"{options.output / name} is not what `python -m deploy.generator` writes", file=sys.stderr)
        return bool(stale)
    for name, content in files.items():
        (options.output / name).parent.mkdir(parents=True, exist_ok=True)
        (options.output / name).write_text(content, encoding="utf-8")
    return 0


def _version() -> str:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    assert found, "pyproject.toml has no version"
    return found[1]


def _read(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.is_file() else None


if __name__ == "__main__":
    sys.exit(main())
