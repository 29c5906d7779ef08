"""Where the files of the package are: what it ships, and what another process needs to import it.

It ships rules, dashboards, provisioning, notification templates and documents. A wheel has copies of them
under the same names as in a clone.
"""

from importlib.util import find_spec
from pathlib import Path

_IMPORTED = ("psutil", "prometheus_client", "heapwatch")


def folder() -> Path:
    """The folder that holds `prometheus`, `alerting`, `dashboards` and `docs`."""
    here = Path(__file__).resolve()
    shipped = here.with_name("files")
    return shipped if shipped.is_dir() else here.parents[2]


def path(*names: str) -> Path:
    """A shipped file or folder."""
    return folder().joinpath(*names)


def packages() -> dict[str, Path]:
    """The folders of this package and of those that it imports, by name, for a process that lacks them.

    Raises:
        OSError: one of them is not installed as files.

    """
    folders = {}
    for name in _IMPORTED:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise OSError(f"{name} is not installed as files")
        folders[name] = Path(spec.origin).parent
    return folders
