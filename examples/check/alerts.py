"""What the alerts on a recorded run say: `python -m examples.check.alerts RECORDING.json.gz`.

The first alert of each leak, as in its notification.
Recordings come from `python -m examples.check --keep FOLDER`.
"""

import json
import re
import sys
import textwrap
from pathlib import Path

from benchmarks.leaks.replay import ask, replay
from benchmarks.leaks.scenario import LABEL, Scenario, load

RULES = sorted(Path("prometheus/rules").glob("*.yml"))
GOT = re.compile(r"Labels:\{(.*?)\}\s*\n?\s*Annotations:\{(.*)\}")


def first_alerts(scenario: Scenario) -> dict[tuple[str, str], tuple[int, str]]:
    """(resource, component) -> minute and name of the first leak alert on it."""
    first: dict[tuple[str, str], tuple[int, str]] = {}
    for minute, alerts in sorted(replay(scenario, RULES).items()):
        for alert in alerts:
            first.setdefault((alert["resource"], alert["component"]), (minute, alert["alertname"]))
    return first


def texts(scenario: Scenario, minute: int, name: str) -> dict[tuple[str, str], str]:
    """(resource, component) -> what alert `name` says in that minute."""
    # None is expected, so that promtool prints those there are.
    test = {"eval_time": f"{minute}m", "alertname": name, "exp_alerts": []}
    printed = ask(scenario, RULES, alert_rule_test=[test])
    found = {}
    for labels_text, annotations_text in GOT.findall(printed):
        labels, annotations = dict(LABEL.findall(labels_text)), dict(LABEL.findall(annotations_text))
        text = json.loads(f'"{annotations["description"]}"')
        found[labels["resource"], labels["component"]] = f"{name} ({labels['severity']}): {text}"
    return found


def said(recording: Path) -> str:
    """All of them, the earliest first, a paragraph each."""
    scenario = load(recording)
    return "".join(
        textwrap.fill(f"minute {minute}: {texts(scenario, minute, name)[leak]}", 110) + "\n"
        for leak, (minute, name) in first_alerts(scenario).items()
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(said(Path(sys.argv[1])), end="")
