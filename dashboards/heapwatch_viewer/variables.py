"""Template variables: their choices, and their place in queries and links."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from heapwatch_viewer.model import Variable
from heapwatch_viewer.prometheus import Prometheus
from heapwatch_viewer.timerange import Window

ALL = "$__all"
_REFERENCE = re.compile(r"\$(?:\{(?P<braced>\w+)(?::(?P<format>\w+))?\}|(?P<plain>\w+))")
_QUERY_RESULT = re.compile(r"^query_result\((?P<query>.+)\)$", re.DOTALL)
_LABEL_VALUES = re.compile(r"^label_values\(\s*(?:(?P<selector>.+),\s*)?(?P<label>\w+)\s*\)$", re.DOTALL)


@dataclass(frozen=True)
class Selection:
    """What is chosen for one variable.

    Attributes:
        values: the chosen values, or `[ALL]`.
        as_regex: the variable allows several values, so queries match it as a regular expression.
        all_value: what `All` is in a query.

    """

    values: tuple[str, ...]
    as_regex: bool = False
    all_value: str = ".*"

    def in_query(self) -> str:
        """The selection as Grafana writes it into a Prometheus query."""
        if self.values == (ALL,):
            return self.all_value
        if not self.as_regex:
            return _quoted(",".join(self.values))
        escaped = [_quoted(re.escape(value)) for value in self.values]
        return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"

    def in_link(self, name: str) -> str:
        """The selection as parameters of an address."""
        return urlencode([(f"var-{name}", value) for value in self.values])


Selections = Mapping[str, Selection]


def _quoted(text: str) -> str:
    """Text as it may stand between the quotes of a label matcher: a value must not end the matcher."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


async def choices(
    variable: Variable, chosen: Selections, prometheus: Prometheus, window: Window
) -> dict[str, str]:
    """What `variable` can be, given the variables before it: value to text. Raises QueryError."""
    if variable.kind in ("custom", "interval", "constant", "textbox"):
        return _plain([part.strip() for part in variable.query.split(",") if part.strip()])
    if variable.kind != "query":
        return _plain(variable.default)
    query = variable.query.strip()
    asked = _QUERY_RESULT.match(query)
    if asked:
        found = await prometheus.instant(interpolate(asked["query"], chosen, window), window.end)
        pairs = [_captured(variable.regex, series.labels) for series in found]
        known: dict[str, str] = {}
        for value, text in pairs:  # as in Grafana, the first text of a value counts
            known.setdefault(value, text)
        return dict(sorted(known.items(), key=lambda pair: pair[1]))
    match = _LABEL_VALUES.match(query)
    if not match:
        raise ValueError(
            f"variable {variable.name}: only label_values(…) and query_result(…) are known, not "
            f"{variable.query!r}"
        )
    selector = interpolate(match["selector"] or "", chosen, window)
    values = await prometheus.label_values(match["label"], selector, window)
    if variable.regex:
        pattern = re.compile(variable.regex.strip("/"))
        values = [value for value in values if pattern.search(value)]
    return _plain(sorted(values))


def _plain(values: Sequence[str]) -> dict[str, str]:
    return {value: value for value in values}


def _captured(regex: str, labels: Mapping[str, str]) -> tuple[str, str]:
    """Value and text that the groups of the expression find in a series, written as Grafana writes it."""
    written = "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"
    pattern = re.sub(r"\(\?<(\w+)>", r"(?P<\1>", regex.removesuffix("g").strip("/"))
    groups = {
        name: text
        for match in re.finditer(pattern, written)
        for name, text in match.groupdict().items()
        if text is not None
    }
    value = groups.get("value") or groups.get("text") or written
    return value, groups.get("text") or value


def settle(variable: Variable, wanted: Sequence[str], available: Collection[str]) -> Selection:
    """What is chosen: what was wanted where that is available, else the default, else all or the first."""
    values: tuple[str, ...] = (ALL,) if variable.include_all else tuple(available)[:1]
    for candidate in (wanted, variable.default):
        kept = [value for value in candidate if value in available or (value == ALL and variable.include_all)]
        if kept:
            values = (ALL,) if ALL in kept else tuple(kept) if variable.multi else (kept[0],)
            break
    return Selection(values, variable.multi or variable.include_all, variable.all_value or ".*")


def interpolate(text: str, chosen: Selections, window: Window) -> str:
    """Put variables and Grafana's own (`$__rate_interval`, …) into a query.

    A variable that allows several values becomes a regular expression, as Grafana does for Prometheus.
    """
    own = {
        "__interval": f"{window.step}s",
        "__interval_ms": str(window.step * 1000),
        "__rate_interval": f"{window.rate_interval}s",
        "__range": f"{int(window.end - window.start)}s",
        "__range_s": str(int(window.end - window.start)),
        "__from": str(int(window.start * 1000)),
        "__to": str(int(window.end * 1000)),
    }

    def replace(match: re.Match[str]) -> str:
        name = match["braced"] or match["plain"]
        if name in own:
            return own[name]
        if name not in chosen:
            return match[0]
        selection = chosen[name]
        return ",".join(selection.values) if match["format"] == "raw" else selection.in_query()

    return _REFERENCE.sub(replace, text)
