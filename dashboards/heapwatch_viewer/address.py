"""Addresses: what that of a page says, and those that panels and tables point to."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from heapwatch_viewer.model import Dashboard
from heapwatch_viewer.queries import ALL, Selections
from heapwatch_viewer.timerange import TimeRange

_REFERENCE = re.compile(r"\$\{([^}]+)\}|\$(\w+)")


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
    selections: Selections = field(default_factory=dict)
    chosen_range: bool = True

    @classmethod
    def read(cls, board: Dashboard, given: Sequence[tuple[str, str]]) -> "State":
        """The state in an address. Raises ValueError for a malformed time range."""
        parameters = dict(given)
        wanted: dict[str, list[str]] = {}
        for key, value in given:
            if key.startswith("var-"):
                wanted.setdefault(key.removeprefix("var-"), []).append(ALL if value == "All" else value)
        return cls(
            span=TimeRange(parameters.get("from", board.start), parameters.get("to", board.end)),
            refresh=parameters.get("refresh", board.refresh),
            theme=parameters.get("theme", "dark"),
            wanted=wanted,
            chosen_range="from" in parameters,
        )


def board_address(
    uid: str, span: TimeRange | None, selections: Selections, refresh: str = "", theme: str = ""
) -> str:
    """The address of dashboard `uid` with range (None: its own), variables, refresh and theme."""
    state = [("from", span.start), ("to", span.end)] if span else []
    state += [(f"var-{name}", value) for name, chosen in selections.items() for value in chosen]
    state += [(key, value) for key, value in (("refresh", refresh), ("theme", theme)) if value]
    return f"/d/{uid}?{urlencode(state)}"


def complete(address: str, values: Mapping[str, str], span: TimeRange, selections: Selections) -> str:
    """Fill in Grafana's references in an address: fields of the row, variables, the time range."""

    def replace(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name == "__url_time_range":
            return urlencode([("from", span.start), ("to", span.end)])
        if name in values:
            return quote(values[name], safe="")
        return quote(",".join(selections.get(name, ())), safe="")

    return _REFERENCE.sub(replace, address)
