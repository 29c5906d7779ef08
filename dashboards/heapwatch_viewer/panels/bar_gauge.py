"""Bar gauges: one bar a series, from its minimum to its maximum."""

from html import escape

from heapwatch_viewer.panels.base import Answers, Html, nothing, painted
from heapwatch_viewer.reduce import reduced


def render(answers: Answers) -> Html:
    """Every series as a bar with its value."""
    calculation = (answers.panel.options.get("reduceOptions", {}).get("calcs") or ["lastNotNull"])[0]
    rows = [(series, field, reduced(series.points, calculation)) for series, field in answers.fields()]
    highest = max((value for _, _, value in rows if value is not None), default=0.0)
    # As Grafana does: the only series has a name only where one was set.
    named = len(rows) > 1 or bool(
        answers.panel.raw.get("fieldConfig", {}).get("defaults", {}).get("displayName")
    )
    bars = []
    for index, (_, field, value) in enumerate(rows):
        low = field.minimum or 0.0
        high = field.maximum if field.maximum is not None else highest
        share = 0.0 if value is None or high <= low else min(max((value - low) / (high - low), 0.0), 1.0)
        paint = field.paint(value) or painted(field, index, value)
        name = escape(field.name, quote=True) if named else ""
        bars.append(
            f'<div class="bar-name" title="{name}">{name}</div>'
            f'<div class="bar-track"><div class="bar" style="width:{share:.1%}; background:{paint}"></div>'
            "</div>"
            f'<div class="bar-value">{escape(field.text(value))}</div>'
        )
    if not bars:
        return Html(nothing(answers.panel))
    return Html(f'<div class="bars">{"".join(bars)}</div>')
