"""Builds the conda package of deploy/conda/recipe.yaml, installs it and runs its tests, without conda-forge.

What it needs comes from a channel in a folder, whose packages are this Python with pip and hatchling, and
the two dependencies from PyPI. So the recipe is tried; that conda-forge has what it asks for is not.

    python -m tests.conda
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import rattler_build

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "deploy" / "conda" / "recipe.yaml"
PLATFORM = rattler_build.RenderConfig().target_platform
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
STAND_INS = {
    "pip": [],
    "hatchling": [],
    "hatch-fancy-pypi-readme": [],
    "prometheus_client": ["python"],
    "psutil": ["python"],
}


def main() -> int:
    """Returns 0; what does not build raises."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        channel = stand_ins(work)
        built = build(work, channel)
        print(f"built and tested: {', '.join(path.name for path in built)}")
    return 0


def stand_ins(work: Path) -> Path:
    """A channel that has what the recipe asks for."""
    channel, environment = work / "channel", work / "environment"
    venv.create(environment, with_pip=True)
    install = [
        environment / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    subprocess.run(
        [
            *install,
            "hatchling>=1.27",
            "hatch-fancy-pypi-readme>=24",
            "prometheus-client>=0.20",
            "psutil>=5.9",
        ],
        check=True,
    )
    for name, depends in STAND_INS.items():
        (work / name / "share").mkdir(parents=True)
        (work / name / "share" / name).touch()
        package(channel, name, "100", work / name, depends)
    package(channel, "python", f"{VERSION}.0", environment, [])
    return channel


def package(channel: Path, name: str, version: str, files: Path, depends: list[str]) -> None:
    """Write one package."""
    folder = channel / PLATFORM
    folder.mkdir(parents=True, exist_ok=True)
    rattler_build.assemble_package(name, version, PLATFORM, "0", folder, files_dir=files, depends=depends)


def build(work: Path, channel: Path) -> list[Path]:
    """Build the recipe with that channel, and test what was built."""
    recipe = rattler_build.Stage0Recipe.from_file(RECIPE)
    (variant,) = recipe.render(rattler_build.VariantConfig({"python": [VERSION]}))
    result = variant.run_build(
        rattler_build.ToolConfiguration(test_strategy="native"),
        output_dir=channel,
        channels=[],
    )
    return [Path(path) for path in result.packages]


if __name__ == "__main__":
    sys.exit(main())
