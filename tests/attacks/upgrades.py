"""A stack that takes over what an earlier release left."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx

from heapwatch.discovery import Owner
from tests.alerting.harness import wait_for
from tests.alerting.stage import Stage
from tests.attacks.record import Exchange, attack
from tests.attacks.stacks import own_stack

# As 0.1.0 wrote them; its receiver had acted on one alert and left one alone.
LEFT = Path(__file__).with_name("state_of_0_1_0")
MARK = "heapwatch made this folder: `make clean` and `heapwatch clean` remove what is theirs in it.\n"
TOKEN = "the-token-of-an-earlier-release"
PASSWORD = "a-password-of-an-earlier-release"


def _lay_out(state: Path, targets: Path) -> Path:
    """The state folder of the release; returns the target of a trainer that has ended since."""
    for name in ("etc/targets/stack", "data", "logs", "run", "secrets"):
        (state / name).mkdir(parents=True, mode=0o700)
    targets.mkdir(mode=0o700)
    (state / ".made-by-heapwatch").write_text(MARK)
    for name, text in (("token", TOKEN), ("webhook-token", "old"), ("grafana-admin-password", PASSWORD)):
        (state / "secrets" / name).write_text(text + "\n")
        (state / "secrets" / name).chmod(0o600)
    for name in ("prometheus.yml", "alertmanager.yml"):
        (state / "etc" / name).write_text((LEFT / name).read_text())
    (state / "etc/targets/stack/stack.json").write_text((LEFT / "stack.json").read_text())
    for name in ("rules", "templates"):  # it was installed elsewhere
        (state / "etc" / name).symlink_to(f"/nowhere/{name}")
    with closing(sqlite3.connect(state / "data" / "receiver.sqlite3")) as database:
        database.executescript((LEFT / "receiver.sql").read_text())
    owner = {**vars(Owner.current()), "boot": "an earlier one"}
    target = targets / "vm_127.0.0.1_7777.json"
    labels = {"__meta_heapwatch_owner": json.dumps(owner)}
    target.write_text(json.dumps([{"targets": ["127.0.0.1:7777"], "labels": labels}]))
    return target


@attack("a state folder of release 0.1.0, and heapwatch up", quick=False)
def older_state(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("stack")
    target = _lay_out(folder / "state ü", folder / "targets")
    exchange.sent("heapwatch up, on a state folder of release 0.1.0 with two rows of audit and a dead target")
    with own_stack(folder) as stack:
        receiver = stack.settings.url(stack.settings.ports.receiver)
        rows = httpx.get(f"{receiver}/actions", params={"limit": 500}, timeout=30).json()["rows"]
        old = [row for row in rows if row["alertname"] == "TrainerMemoryHigh"]
        exchange.back(f"healthy; its audit: {[(row['decision'], row['reason']) for row in old]}")
        assert [row["decision"] for row in old] == ["suppress", "act"]
        assert old[1]["action"]["result"] == "helped"
        secrets = stack.settings.state / "secrets"
        assert (secrets / "token").read_text().strip() == TOKEN
        assert (secrets / "grafana-admin-password").read_text().strip() == PASSWORD
        wait_for(lambda: not target.exists(), "the dead trainer's target is gone", 30)
        again = stack.run("up", timeout=500)
        exchange.back(f"the same token and password; the dead target is gone; up again: {again.returncode}")
        assert again.returncode == 0, again.stderr
