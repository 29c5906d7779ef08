"""A line plot as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

from heapwatch.runtime.plain_text import plain

Line = Sequence[tuple[float, float]]
_WIDTH, _HEIGHT = 900, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 880, 12, 250
# Okabe and Ito's colours, which people with any colour vision tell apart.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
_MOST_POINTS = 500


def line_plot(lines: Mapping[str, Line], x_label: str) -> str:
    """Lines by name over x, with ticks and a legend; `` where fewer than two points are given."""
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
