"""What people read: the templates, rendered by Alertmanager's own tool."""

import json
from pathlib import Path

import pytest

from tests.support.programs import amtool

pytestmark = pytest.mark.slow

TEMPLATES = Path(__file__).parents[2] / "alerting" / "templates" / "*.tmpl"
DASHBOARD = "http://127.0.0.1:3009/d/heapwatch-trainer?var-job=trainer&var-instance=127.0.0.1%3A7777"


def alert(status="firing", **labels):
    return {
        "status": status,
        "labels": {"alertname": "TrainerLeak", "instance": "127.0.0.1:7777", **labels},
        "annotations": {
            "summary": f"127.0.0.1:7777: {labels.get('resource', 'memory')} leaks",
            "description": "It grows by 25MB a minute & <nothing> stops it.",
            "runbook_url": "https://git.example.com/docs/runbooks/TrainerLeak.md",
            "dashboard_url": DASHBOARD,
        },
        "startsAt": "2026-01-02T10:00:00Z",
        "endsAt": "2026-01-02T11:30:00Z",
    }


def render(folder, template, alerts, kind="text"):
    labels = [set(entry["labels"].items()) for entry in alerts]
    data = {
        "status": "firing" if any(entry["status"] == "firing" for entry in alerts) else "resolved",
        "alerts": alerts,
        "commonLabels": dict(set.intersection(*labels)),
        "externalURL": "http://127.0.0.1:9093",
    }
    (folder / "data.json").write_text(json.dumps(data))
    options = [
        f"--template.glob={TEMPLATES}",
        f'--template.text={{{{ template "heapwatch.{template}" . }}}}',
        f"--template.data={folder / 'data.json'}",
        f"--template.type={kind}",
    ]
    return amtool("template", "render", *options).strip()


@pytest.mark.parametrize(
    ("alerts", "title"),
    [
        ([alert(severity="warning")], "Warning: 127.0.0.1:7777: memory leaks"),
        ([alert(severity="critical")], "Critical: 127.0.0.1:7777: memory leaks"),
        ([alert(severity="critical", level="emergency")], "Emergency: 127.0.0.1:7777: memory leaks"),
        ([alert("resolved", severity="critical")], "Resolved: 127.0.0.1:7777: memory leaks"),
        (
            [alert(severity="warning", resource="bodies"), alert(severity="warning")],
            "Warning: 127.0.0.1:7777: bodies leaks (2 alerts)",
        ),
    ],
)
def test_the_title_says_how_bad_and_what(tmp_path, alerts, title):
    assert render(tmp_path, "title", alerts) == title


def test_a_slack_message_leads_to_the_dashboard_the_runbook_and_a_silence(tmp_path):
    text = render(tmp_path, "slack", [alert(severity="critical", component="my list")])
    assert "*127.0.0.1:7777: memory leaks* since 10:00 UTC\nIt grows by 25MB a minute" in text
    assert f"<{DASHBOARD.replace('&', '&amp;')}|Dashboard>" in text
    assert "<https://git.example.com/docs/runbooks/TrainerLeak.md|Runbook>" in text
    assert "component%3D%22my%20list%22" in text
    assert "over at" not in text


def test_a_resolved_message_says_when(tmp_path):
    assert "over at 11:30 UTC" in render(tmp_path, "slack", [alert("resolved")])


def test_mail_is_safe_html_and_says_that_a_cleanup_was_asked_for(tmp_path):
    html = render(tmp_path, "email", [alert(action="cleanup", component="my list")], kind="html")
    assert "component%3D%22my%20list%22" in html
    assert "&amp; &lt;nothing&gt; stops it" in html
    assert "The receiver was asked to clean up." in html
    assert "The receiver was asked" not in render(tmp_path, "email", [alert()], kind="html")


def test_no_label_is_markup_to_slack(tmp_path):
    crafted = alert(resource="<!channel> <https://evil.example|Dashboard> &amp;")
    for template in ("slack", "slack.title"):
        text = render(tmp_path, template, [crafted])
        assert "&lt;!channel&gt; &lt;https://evil.example|Dashboard&gt; &amp;amp;" in text
        assert "<!channel>" not in text
    assert f"<{DASHBOARD.replace('&', '&amp;')}|Dashboard>" in render(tmp_path, "slack", [crafted])
