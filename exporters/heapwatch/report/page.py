"""A report as one self-contained HTML page."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from html import escape

from heapwatch.analysis.verdict import SERIOUS
from heapwatch.report.document import Section, headline, sections, title
from heapwatch.report.findings import Report
from heapwatch.runtime.plain_text import plain

Line = Sequence[tuple[float, float]]
_WIDTH, _HEIGHT = 900, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 880, 12, 250
# Okabe and Ito's colours, which people with any colour vision tell apart.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
_MOST_POINTS = 500

_STYLE = """
:root { color-scheme: light dark; --line: #8885; --bad: #c0392b; --good: #1e8449; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .2rem .8rem; border-bottom: 1px solid var(--line); text-align: right; }
td:first-child, th:first-child { text-align: left; }
.outcome { font-size: 1.15rem; font-weight: 600; }
.outcome.good { color: var(--good); } .outcome.bad, .bad { color: var(--bad); }
.scroll { max-height: 26rem; overflow: auto; } ul { padding-left: 1.2rem; }
figure { margin: 1rem 0; } figcaption { font-weight: 600; } svg { width: 100%; height: auto; }
"""


def as_html(report: Report, most_rows: int) -> str:
    """The report as a page; names in it are data and are escaped."""
    heading = escape(title(report))
    body = [f"<h1>{heading}</h1>"]
    word = report.verdict
    colour = " bad" if word in SERIOUS else "" if word in ("too early", "growing") else " good"
    body.append(f'<p class="outcome{colour}">{escape(headline(report))}</p>')
    written = sections(report, most_rows)
    body += [_section(section) for section in written[:1]]
    body += _plots(report)
    body += [_section(section) for section in written[1:]]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{heading}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.rows:
        head = ""
        if any(section.columns):
            head = "<tr>" + "".join(f"<th>{escape(column)}</th>" for column in section.columns) + "</tr>"
        rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in section.rows)
        parts.append(f'<div class="scroll"><table>{head}{rows}</table></div>')
    if section.lines:
        items = (escape(line.removeprefix("- ")) for line in section.lines if line != "LEAK FOUND:")
        parts.append(f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>")
    return "\n".join(parts)


def _cell(text: str) -> str:
    bad = ' class="bad"' if text.startswith("LEAK") else ""
    return f"<td{bad}>{escape(text)}</td>"


def _plots(report: Report) -> list[str]:
    phases: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in report.trend:
        phases[row.phase or "memory"].append((row.cycle, row.resident_bytes / 1e9))
    if len(phases) > 1 and "memory" in phases:  # the baseline alone
        del phases["memory"]
    plots = [_figure("Resident memory at the end of each phase (GB)", phases, report.unit)]
    counts: dict[str, Line] = {
        name: report.histories[f"objects {name}"]
        for name, judged in report.objects.items()
        if judged.verdict == "leak"
    }
    plots.append(_figure("Counts that leak", counts, report.unit))
    sizes: dict[str, Line] = {
        name: [(cycle, size / 1e6) for cycle, size in report.histories[f"sizes {name}"]]
        for name, judged in report.sizes.items()
        if judged.verdict in ("leak", "growing")
    }
    plots.append(_figure("Named objects that grow (MB)", sizes, report.unit))
    return [plot for plot in plots if plot]


def _figure(title: str, lines: Mapping[str, Line], unit: str) -> str:
    plot = line_plot(lines, unit)
    return f"<figure><figcaption>{escape(title)}</figcaption>{plot}</figure>" if plot else ""


def line_plot(lines: Mapping[str, Line], x_label: str) -> str:
    """Lines by name over x, with ticks and a legend; an empty text for fewer than two points."""
    shown = dict(list(lines.items())[: len(_COLOURS)])
    points = [point for line in shown.values() for point in line]
    if len(points) < 2:
        return ""
    xs, ys = zip(*points, strict=True)
    x_ticks = [tick for tick in ticks(min(xs), max(xs)) if tick >= min(xs)]
    y_ticks = ticks(min(0.0, *ys), max(ys))
    x_scale = _scale(min(xs), max(xs), _LEFT, _RIGHT)
    y_scale = _scale(y_ticks[0], max(y_ticks[-1], max(ys)), _BOTTOM, _TOP)
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" font-size="12" fill="currentColor" role="img">']
    for tick in y_ticks:
        y = y_scale(tick)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_RIGHT}" stroke="currentColor" opacity=".15"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in x_ticks:
        parts.append(f'<text x="{x_scale(tick):.1f}" y="{_BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<text x="{_RIGHT}" y="{_BOTTOM + 32}" text-anchor="end">{escape(x_label)}</text>')
    for position, (name, line) in enumerate(shown.items()):
        colour, x = _COLOURS[position], _LEFT + position * 160
        path = " ".join(f"{x_scale(px):.1f},{y_scale(py):.1f}" for px, py in _thinned(line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<rect x="{x}" y="{_HEIGHT - 14}" width="10" height="10" fill="{colour}"/>')
        name = plain(name)
        label = name if len(name) <= 21 else f"{name[:20]}…"
        parts.append(
            f'<text x="{x + 15}" y="{_HEIGHT - 5}">{escape(label)}<title>{escape(name)}</title></text>'
        )
    return "".join([*parts, "</svg>"])


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers from at most `low` on, up to `high`: steps of 1, 2 or 5 of a power of 10."""
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if span / (factor * power) <= 6)
    first = math.floor(low / step)
    return [round(number * step, 12) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = high - low or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def _thinned(line: Line) -> Line:
    step = -(-len(line) // _MOST_POINTS)
    return line[::step]
