"""The dashboards of a folder, read again when their files change."""

import json
from pathlib import Path

from heapwatch_viewer.model import Dashboard, parse

HOME = "heapwatch-fleet"


class Library:
    """Every dashboard of `folder` by uid, the home dashboard first, then in the order of its links.

    Attributes:
        boards: what was read last without a fault.
        problem: why a later reading failed, or nothing.

    Raises:
        ValueError: a file is no dashboard, naming the file and what is wrong; or there is none.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamps = self._look()
        self.boards = load(folder)
        self.problem = ""

    @property
    def home(self) -> str:
        """The uid of the dashboard to show first."""
        return next(iter(self.boards))

    def refresh(self) -> None:
        """Read the files again if one changed, came or went; a faulty one leaves the boards as they are."""
        stamps = self._look()
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            self.boards = load(self._folder)
        except (ValueError, OSError) as problem:
            self.problem = f"{problem}; showing the dashboards as they were before"
        else:
            self.problem = ""

    def _look(self) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in self._folder.glob("*.json")}


def load(folder: Path) -> dict[str, Dashboard]:
    """Read every `*.json` in `folder`. Raises ValueError as `Library` says."""
    boards = {}
    for path in sorted(folder.glob("*.json")):
        board = _read(path)
        boards[board.uid] = board
    if not boards:
        raise ValueError(f"no dashboards in {folder}: run `make generate`")
    home = HOME if HOME in boards else next(iter(boards))
    linked = [link["url"].removeprefix("/d/") for link in boards[home].links if link.get("url")]
    order = {uid: place for place, uid in enumerate([home, *linked])}
    return dict(sorted(boards.items(), key=lambda item: order.get(item[0], len(order))))


def _read(path: Path) -> Dashboard:
    try:
        return parse(json.loads(path.read_text()))
    except json.JSONDecodeError as problem:
        raise ValueError(f"{path} is no JSON ({problem}): run `make generate`") from None
    except KeyError as problem:
        raise ValueError(f"{path} is not a dashboard: {problem} is missing somewhere in it") from None
    except (ValueError, TypeError, AttributeError) as problem:
        raise ValueError(f"{path} is not a dashboard: {problem}") from None
