"""Limits as dashed lines that never set the scale.

A limit far above the data would make the data a line at zero: it is then only in the legend, which shows
its value. Grafana has no such option, so it is decided in the query, once for the whole time range.
"""

from collections.abc import Sequence

from . import colors
from .panel import Json, Query, fixed, override_matching

NEAR = 2  # A limit below so many times the highest value in the range is drawn.
FAR = ", off the scale"

_COLORS = {
    **colors.SEVERITIES,
    "growth": colors.CRITICAL,
    "memory": colors.CRITICAL,
    "capacity": colors.WARNING,
    "budget": colors.WARNING,
}


def limit(expression: str, level: str, legend: str, across: str = "max") -> tuple[Query, Query]:
    """Two queries for a limit: near `level` (a selector or an expression), and far above it.

    The legend ends in `limit`, after a severity or what it limits. `across`: how the levels of several
    trainers lie over each other, `max` for lines of one chart, `sum` for a stack.
    """
    return _pair(expression, f"scalar({across}({_highest(level)}))", legend)


def limit_of_each(expression: str, level: str, legend: str) -> tuple[Query, Query]:
    """The same for limits that every trainer has of its own, each near or far from its own level."""
    return _pair(expression, f"on (job, instance) max by (job, instance) ({_highest(level)})", legend)


def _highest(level: str) -> str:
    window = "$__range" if level.endswith("}") else "$__range:1m"
    return f"max_over_time({level}[{window}] @ end())"


def _pair(expression: str, highest: str, legend: str) -> tuple[Query, Query]:
    is_near = f"max_over_time(({expression})[$__range:1m] @ end()) / {highest} < {NEAR}"
    return (
        Query(f"({expression}) and {is_near}", legend),
        Query(f"({expression}) unless {is_near}", legend + FAR),
    )


def looks(queries: Sequence[Query]) -> list[Json]:
    """The look of limits, by their legends: dashed, never stacked; far ones in the legend alone."""
    legends = " ".join(query.legend for query in queries)
    if " limit" not in legends:
        return []
    names = (
        colors.SEVERITIES
        if "{{severity}} limit" in legends
        else [n for n in _COLORS if f"{n} limit" in legends]
    )
    return [
        *(_dashed(f"{name} limit({FAR})?$", _COLORS[name]) for name in names),
        override_matching(f"{FAR}$", custom__hideFrom={"viz": True, "legend": False, "tooltip": True}),
    ]


def _dashed(pattern: str, color: str) -> Json:
    return override_matching(
        pattern,
        color=fixed(color),
        custom__lineStyle={"fill": "dash", "dash": [10, 10]},
        custom__lineWidth=2,
        custom__fillOpacity=0,
        custom__stacking={"group": "limits", "mode": "none"},
    )
