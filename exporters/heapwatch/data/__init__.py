"""Files that the package ships: rules, dashboards, provisioning, notification templates and documents.

In a clone they are links to the folders in which they are edited, in an installed wheel copies.
"""

from importlib.resources import files
from pathlib import Path


def folder() -> Path:
    """The folder that holds `prometheus`, `alerting`, `grafana`, `dashboards` and `docs`."""
    return Path(str(files(__name__)))


def path(*names: str) -> Path:
    """A shipped file or folder, every link resolved, so that other programs find it from anywhere."""
    return folder().joinpath(*names).resolve()
