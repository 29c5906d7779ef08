"""Addresses: of dashboards with their state, and those that panels and tables point to."""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from heapwatch_viewer.timerange import TimeRange
from heapwatch_viewer.variables import Selections

_REFERENCE = re.compile(r"\$\{([^}:]+)(?::(\w+))?\}|\$(\w+)")


def board_address(
    uid: str, span: TimeRange | None, selections: Selections, refresh: str = "", theme: str = ""
) -> str:
    """The address of dashboard `uid` with range (None: its own), variables, refresh and theme."""
    state = [("from", span.start), ("to", span.end)] if span else []
    state += [(f"var-{name}", value) for name, selection in selections.items() for value in selection.values]
    state += [(key, value) for key, value in (("refresh", refresh), ("theme", theme)) if value]
    return f"/d/{uid}?{urlencode(state)}"


def complete(address: str, values: Mapping[str, str], span: TimeRange, selections: Selections) -> str:
    """Fill in Grafana's references in an address: fields of the row, variables, the time range."""
    wholes = {
        "__url_time_range": urlencode([("from", span.start), ("to", span.end)]),
        "__all_variables": "&".join(selection.in_link(name) for name, selection in selections.items()),
    }

    def replace(match: re.Match[str]) -> str:
        name = match[1] or match[3]
        if name in wholes:
            return wholes[name]
        if name in values:
            return quote(values[name], safe="")
        if name in selections:
            if match[2] == "queryparam":
                return selections[name].in_link(name)
            return quote(",".join(selections[name].values), safe="")
        return ""

    return _REFERENCE.sub(replace, address)
