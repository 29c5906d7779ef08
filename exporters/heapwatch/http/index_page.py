"""The page at `/` of a trainer: links, progress of training, age of the samples."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from heapwatch.explain.findings import labelled

_STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; }
h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem 1rem .3rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: normal; opacity: .7; width: 45%; }
code { font-size: .9em; }
.good { color: #1a7f37; } .bad { color: #cf222e; }
"""
_LINKS = (
    ("/metrics", "series for Prometheus"),
    ("/performance_status", "everything below, and more, as JSON"),
    ("/explain", "what grows, what holds it, and remedies, as JSON"),
    ("/healthz", "is it alive"),
    ("/readyz", "does training progress"),
)


def landing_page(status: Mapping[str, Any], *, problem: str | None = None) -> str:
    """Return the page as HTML, from the JSON of `/performance_status`."""
    trainer = status.get("trainer", {}).get("trainer", "trainer")
    links = "".join(
        f'<tr><th><a href="{path}"><code>GET {path}</code></a></th><td>{what}</td></tr>'
        for path, what in _LINKS
    )
    links += "<tr><th><code>POST /force_cleanup</code></th><td>clean up now (needs the token)</td></tr>"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(trainer)} - heapwatch</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(trainer)}</h1>
{_headline(status, problem)}
<table>{links}</table>
{_table("Now", _now(status))}
{_table("Over their limits, or leaking", _alerts(status))}
{_table("Age of the samples", _ages(status))}
</body>
</html>
"""


def _headline(status: Mapping[str, Any], problem: str | None) -> str:
    if problem:
        return f'<p class="bad">{escape(problem)}</p>'
    idle = status.get("performance", {}).get("seconds_since_progress")
    if idle is None:
        return "<p>Training has not reported any progress yet.</p>"
    training = status.get("training")
    if training == "stalled":
        return f'<p class="bad">Training is stalled: no progress for {_duration(idle)}.</p>'
    return f'<p class="good">Training progresses: the last step was {_duration(idle)} ago.</p>'


def _now(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [
        (f"memory, {role}", f"{size / 1e6:,.1f} MB")
        for role, size in status.get("memory", {}).get("resident_bytes", {}).items()
    ]
    if "leaks" in status:
        leaks = status["leaks"]
        rows.append(("verdict", labelled(leaks["verdict"], leaks.get("message", ""))))
    rows += [(f"bodies, {kind}", f"{count:,}") for kind, count in status.get("body_types", {}).items()]
    rows += [
        (name, f"{count:,}") for name, count in status.get("entities", {}).items() if name != "world_bodies"
    ]
    rows += [(f"buffer {name}", _buffer(buffer)) for name, buffer in status.get("buffers", {}).items()]
    rows += [(f"{unit}s", f"{count:,}") for unit, count in status.get("progress", {}).items()]
    return rows


def _buffer(buffer: Mapping[str, float]) -> str:
    parts = []
    if "items" in buffer:
        of = f" of {buffer['capacity_items']:,}" if "capacity_items" in buffer else ""
        parts.append(f"{buffer['items']:,}{of} items")
    if "bytes" in buffer:
        parts.append(f"{buffer['bytes'] / 1e6:,.1f} MB")
    return ", ".join(parts)


def _alerts(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            f"{alert['severity']}: {alert['resource']} {alert['component']}",
            _measured(alert),
        )
        for alert in status.get("alerts", [])
    ]


def _measured(alert: Mapping[str, Any]) -> str:
    value, limit = f"{alert['value']:,.6g}", f"{alert['limit']:,.6g}"
    if alert["kind"] == "leak" and not alert["limit"]:
        return f"leaks {value} a minute"
    return f"{value} (limit {limit}{' a minute' if alert['kind'] == 'growth' else ''})"


def _ages(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, _duration(age)) for name, age in status.get("sample_age_seconds", {}).items()]


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<h2>{title}</h2>\n<table>{cells}</table>"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
