"""What the address of a page says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from heapwatch_viewer.model import Dashboard
from heapwatch_viewer.timerange import TimeRange
from heapwatch_viewer.variables import ALL, Selection


@dataclass
class State:
    """What the address of the page says; everything else is derived.

    Attributes:
        chosen_range: whether the time range was chosen, or is the dashboard's own.

    """

    span: TimeRange
    refresh: str
    theme: str
    wanted: dict[str, list[str]]
    selections: dict[str, Selection] = field(default_factory=dict)
    annotations: set[str] = field(default_factory=set)
    chosen_range: bool = True

    @classmethod
    def read(
        cls, board: Dashboard, parameters: Mapping[str, str], several: Sequence[tuple[str, str]]
    ) -> "State":
        """The state in an address. Raises ValueError for a malformed time range."""
        wanted: dict[str, list[str]] = {}
        for key, value in several:
            if key.startswith("var-"):
                wanted.setdefault(key.removeprefix("var-"), []).append(ALL if value == "All" else value)
        return cls(
            span=TimeRange(parameters.get("from", board.start), parameters.get("to", board.end)),
            refresh=parameters.get("refresh", board.refresh),
            theme=parameters.get("theme", "dark"),
            wanted=wanted,
            annotations={annotation.name for annotation in board.annotations if annotation.enabled},
            chosen_range="from" in parameters,
        )
