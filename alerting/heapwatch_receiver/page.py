"""The audit as an HTML page without scripts and without external resources."""

from __future__ import annotations

from html import escape
from urllib.parse import urlencode

from heapwatch.text.numbers import size
from heapwatch_receiver.audit import AuditRow, Filter, Page
from heapwatch_receiver.ledger import Action
from heapwatch_receiver.settings import Settings

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
)

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --faint: #666;
  --good: #2a8a4a; --bad: #c0392b; --wait: #b7791f; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1240px; padding: 20px; }
h1 { font-size: 20px; margin: 0 0 4px; } p { margin: 0 0 14px; color: var(--faint); } p a { color: inherit; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--faint); }
th, td { padding: 6px 12px 6px 0; border-top: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; } small { color: var(--faint); display: block; }
.tag { font-weight: 600; white-space: nowrap; }
td:nth-child(2) { min-width: 130px; } td:nth-child(3) { min-width: 180px; }
@media (prefers-color-scheme: dark) { :root { --faint: #aaa; --good: #5c8; --bad: #f77; --wait: #eb5; } }
@media (max-width: 800px) { thead { display: none; } tr { display: block; border-top: 1px solid var(--line); }
  td { display: block; border: 0; padding: 3px 0; } td:empty { display: none; } }
.good { color: var(--good); } .bad { color: var(--bad); } .wait { color: var(--wait); }
"""
_TONES = {
    "helped": "good", "notified": "good", "restarted": "good",
    "unverified": "wait", "refused": "wait", "waiting": "wait",
    "no_effect": "bad", "failed": "bad", "pending": "bad", "give_up": "bad",
}  # fmt: skip


def render(page: Page, chosen: Filter, settings: Settings) -> str:
    """The page as HTML; every text in it is escaped."""
    refresh = '<meta http-equiv="refresh" content="30">' if chosen.before is None else ""
    mode = (
        "Dry run: no requests are sent to trainers."
        if settings.dry_run
        else f"Acts; escalation: {settings.escalation}."
    )
    rows = "".join(_row(row) for row in page.rows) or '<tr><td colspan="5">Nothing yet.</td></tr>'
    older = ""
    if page.next:
        query = urlencode(chosen.model_dump(exclude_none=True, exclude_defaults=True) | {"before": page.next})
        older = f'<p><a href="{escape("/?" + query)}">older</a></p>'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Heapwatch receiver</title>'
        f'{refresh}<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>Heapwatch receiver</h1><p>{escape(mode)} Times are UTC."
        ' The same as <a href="/actions">JSON</a>.</p>'
        f"<table><thead><tr><th>Received</th><th>Trainer</th><th>Alert</th>"
        f"<th>Decision</th><th>Result</th></tr></thead><tbody>{rows}</tbody></table>{older}</body></html>"
    )


def _row(row: AuditRow) -> str:
    labels = ", ".join(
        f"{name} {row.labels[name]}" for name in ("severity", "resource", "component") if name in row.labels
    )
    return (
        f"<tr><td>{row.received_at:%Y-%m-%d %H:%M:%S}<small>#{row.id}</small></td>"
        f"<td>{escape(row.instance) or '-'}<small>{escape(row.job)}</small></td>"
        f"<td>{escape(row.alertname)}<small>{escape(labels)}</small><small>{escape(row.summary)}</small></td>"
        f"<td>{_tag(row.decision)}<small>{escape(row.reason or '')}: {escape(row.detail or '')}</small></td>"
        f"<td>{_action(row.action) if row.action else ''}</td></tr>"
    )


def _action(action: Action) -> str:
    facts = []
    if action.freed_bytes is not None:
        facts.append(f"{size(action.freed_bytes)} freed")
    facts += [f"{count:g} {resource} removed" for resource, count in action.removed.items() if count]
    if action.duration_seconds is not None:
        facts.append(f"took {action.duration_seconds:.2f} s")
    return (
        f"{_tag(action.result or action.state)} {escape(', '.join(facts))}"
        f"<small>{escape(action.detail)}</small><small>request {escape(action.request_id)}</small>"
    )


def _tag(word: str) -> str:
    return f'<span class="tag {_TONES.get(word, "")}">{escape(word.replace("_", " "))}</span>'
