"""A report as one self-contained HTML page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from html import escape

from heapwatch.analysis.verdict import SERIOUS
from heapwatch.report.document import Section, headline, sections, title
from heapwatch.report.findings import Report
from heapwatch.report.plot import Line, line_plot

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
    look = " bad" if word in SERIOUS else "" if word in ("too early", "growing") else " good"
    body.append(f'<p class="outcome{look}">{escape(headline(report))}</p>')
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
    changed = {name: judged for name, judged in report.objects.items() if judged.verdict == "leak"}
    counts: dict[str, Line] = {name: report.histories[f"objects {name}"] for name in changed}
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
