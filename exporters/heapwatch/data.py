"""Files that the package ships: rules, dashboards, provisioning, notification templates and documents.

A wheel has copies of them under the same names as in a clone.
"""

from pathlib import Path


def folder() -> Path:
    """The folder that holds `prometheus`, `alerting`, `dashboards` and `docs`."""
    here = Path(__file__).resolve()
    shipped = here.with_name("files")
    return shipped if shipped.is_dir() else here.parents[2]


def path(*names: str) -> Path:
    """A shipped file or folder."""
    return folder().joinpath(*names)
