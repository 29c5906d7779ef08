"""What the alerts on a recorded run say: `python -m examples.check.alerts RECORDING.json.gz`.

Of each leak the first alert, as whoever is notified reads it.
Recordings come from `python -m examples.check --keep FOLDER`.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.leaks.replay import input_series, replay
from benchmarks.leaks.scenario import LABEL, Scenario, load
from examples.check.__main__ import RULES

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
    promtool = shutil.which("promtool")
    if promtool is None:
        raise FileNotFoundError("promtool is not on PATH")
    test = {
        "rule_files": [str(path.resolve()) for path in RULES],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": f"{scenario.scrape_seconds}s",
                "input_series": input_series(scenario),
                # None is expected, so that promtool prints those there are.
                "alert_rule_test": [{"eval_time": f"{minute}m", "alertname": name, "exp_alerts": []}],
            }
        ],
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump(test, file)  # JSON is YAML
        file.flush()
        done = subprocess.run([promtool, "test", "rules", file.name], capture_output=True, text=True)
    found = {}
    for labels_text, annotations_text in GOT.findall(done.stdout + done.stderr):
        labels, annotations = dict(LABEL.findall(labels_text)), dict(LABEL.findall(annotations_text))
        text = json.loads(f'"{annotations["description"]}"')
        found[labels["resource"], labels["component"]] = f"{name} ({labels['severity']}): {text}"
    return found


def main(recording: Path) -> None:
    """Print them, the earliest first."""
    scenario = load(recording)
    for (resource, component), (minute, name) in first_alerts(scenario).items():
        print(f"minute {minute}: {texts(scenario, minute, name)[resource, component]}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
