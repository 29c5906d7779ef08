import os
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
# The folders that the packages stand in, as pyproject.toml names them to an editable installation.
SOURCES = ("exporters", "alerting", "dashboards", "stack")


def python_path(root: Path = REPOSITORY) -> str:
    """What PYTHONPATH must hold so that a Python without an installation finds all packages of a clone."""
    return os.pathsep.join(map(str, [*(root / name for name in SOURCES), root]))
