"""What `heapwatch rules` and `heapwatch dashboards` write, as promtool and Grafana's form see it."""

import subprocess

from heapwatch import data
from tests.support.programs import find


def shipped():
    return list(data.path("prometheus", "rules").glob("*.yml"))


def test_job_and_addresses_of_the_rules_are_the_users_and_promtool_accepts_them(tmp_path, run):
    addresses = (
        "--dashboards-url",
        "https://grafana.example.com/",
        "--runbooks-url",
        "https://wiki.example.com/rl",
    )
    assert run("rules", tmp_path, "--job", "rl", *addresses)[0] == 0
    files = sorted(tmp_path.glob("*.yml"))
    assert len(files) == len(shipped())
    promtool = find("promtool")
    done = subprocess.run([promtool, "check", "rules", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = "".join(file.read_text() for file in files)
    assert 'job="trainer"' not in text
    assert 'up{job="rl"}' in text
    assert "https://grafana.example.com/d/heapwatch-trainer?" in text
    assert "https://wiki.example.com/rl/TrainerLeak.md" in text
    assert "externalLabels" not in text


def test_what_is_no_address_is_refused(tmp_path, run):
    code, _, errors = run("rules", tmp_path, "--dashboards-url", "grafana")
    assert code == 64
    assert "--dashboards-url: 'grafana' is no address" in errors


def test_the_dashboards_are_those_that_are_shipped(tmp_path, run):
    assert run("dashboards", tmp_path / "new")[0] == 0
    names = {file.name for file in data.path("dashboards", "generated").glob("*.json")}
    assert {file.name for file in (tmp_path / "new").iterdir()} == names
