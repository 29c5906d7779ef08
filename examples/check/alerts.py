"""What the alerts on a recorded run say: `python -m examples.check.alerts RECORDING.json.gz`.

The first alert of each leak, as in its notification.
Recordings come from `python -m examples.check --keep FOLDER`.
"""

import json
import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from benchmarks.leaks.judged import with_judge
from benchmarks.leaks.replay import ask, replay
from benchmarks.leaks.scenario import LABEL, Scenario, load
from examples.check.plan import Named

RULES = sorted(Path("prometheus/rules").glob("*.yml"))
TEST = re.compile(r"alertname: (\w+), time: (?:(\d+)h)?(?:(\d+)m)?(?:\d+s)?,")
GOT = re.compile(r"Labels:\{(.*?)\}\s*\n?\s*Annotations:\{(.*)\}")


def first_alerts(scenario: Scenario) -> dict[Named, tuple[int, str]]:
    """Leak -> minute and name of the first alert on it."""
    first: dict[Named, tuple[int, str]] = {}
    for minute, alerts in sorted(replay(scenario, RULES).items()):
        for alert in alerts:
            first.setdefault((alert["resource"], alert["component"]), (minute, alert["alertname"]))
    return first


def texts(scenario: Scenario, alerts: Iterable[tuple[int, str]]) -> dict[tuple[Named, int, str], str]:
    """Leak, minute and name of an alert -> what it says then."""
    # None is expected, so that promtool prints those there are.
    tests = [
        {"eval_time": f"{minute}m", "alertname": name, "exp_alerts": []} for minute, name in sorted({*alerts})
    ]
    _, *printed = TEST.split(ask(scenario, RULES, alert_rule_test=tests))
    found = {}
    for name, hours, minutes, got in zip(*(printed[part::4] for part in range(4)), strict=True):
        minute = 60 * int(hours or 0) + int(minutes or 0)
        for labels_text, annotations_text in GOT.findall(got):
            labels, annotations = dict(LABEL.findall(labels_text)), dict(LABEL.findall(annotations_text))
            text = json.loads(f'"{annotations["description"]}"')
            leak = labels["resource"], labels["component"]
            found[leak, minute, name] = f"{name} ({labels['severity']}): {text}"
    return found


def said(recording: Path) -> str:
    """All of them, the earliest first, a paragraph each."""
    scenario = with_judge(load(recording))  # time is compressed: the trainer's own judge saw seconds
    first = first_alerts(scenario)
    text_of = texts(scenario, first.values())
    return "".join(
        textwrap.fill(f"minute {minute}: {text_of[leak, minute, name]}", 110) + "\n"
        for leak, (minute, name) in first.items()
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(said(Path(sys.argv[1])), end="")
