"""The whole loop on real servers: `demo` leaks, and each service is queried separately."""

from __future__ import annotations

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.running import Stack, wait_for

MINUTES = 60


def exposed(stack: Stack, name: str, **labels: str) -> float:
    """Sum of a series on the trainer's own /metrics."""
    text = httpx.get(f"http://{stack.trainer}/metrics", timeout=10).text
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    chosen = [s.value for s in samples if s.name == name and labels.items() <= s.labels.items()]
    assert chosen, f"{name} {labels} is not exposed"
    return sum(chosen)


@pytest.mark.timeout(15 * MINUTES)
def test_a_leak_goes_once_around_the_loop(stack: Stack) -> None:
    loop = stack.loop()
    healthy = loop.levels()
    assert 180 <= healthy.bodies <= 195
    assert loop.alerts() == []

    demonstration = stack.start("demo")
    try:
        wait_for("bodies on /metrics", lambda: exposed(stack, "trainer_bodies") > 400, 2 * MINUTES)
        wait_for("food on /metrics", lambda: exposed(stack, "trainer_entities", type="food_sources") > 100)
        wait_for("bodies in Prometheus", lambda: (seen := loop.recorded()) and seen.bodies > 400)
        for state in ("pending", "firing"):
            wait_for(
                f"a {state} alert on the bodies",
                lambda state=state: [
                    alert
                    for alert in loop.alerts()
                    if alert["alertstate"] == state and alert["resource"] == "bodies"
                ],
                5 * MINUTES,
            )
        leaking = loop.levels()
        wait_for(
            "the alert in Alertmanager", lambda: [a for a in loop.notified() if a["resource"] == "bodies"]
        )
        rows = wait_for("the receiver's answered cleanup", lambda: answered(stack), 3 * MINUTES)
        assert rows[0]["decision"] == "act"
        assert rows[0]["labels"]["severity"] == "critical"
        assert rows[0]["action"]["removed"]["bodies"] > 500
        action = rows[0]["action"]["action"]
        assert exposed(stack, "trainer_cleanups_total", action=action) >= 1
        assert stack.loop().status()["last_cleanup"]["action"] == action

        out, error = demonstration.communicate(timeout=8 * MINUTES)
        assert demonstration.returncode == 0, out + error
        assert "the loop closed" in out
    finally:
        demonstration.kill()

    after = loop.levels()
    assert after.bodies < leaking.bodies / 2  # the leak went on until the cleanup was seen
    assert after.food < leaking.food / 2
    assert after.memory < leaking.memory - 50e6
    assert loop.freed() > 50e6
    assert loop.query(f'trainer_cleanup_removed_total{{instance="{stack.trainer}", resource="bodies"}} > 500')
    assert answered(stack)[0]["action"]["result"] == "helped"


def answered(stack: Stack) -> list[dict]:
    rows = [row for row in stack.loop().actions() if row["action"]]
    return [row for row in rows if row["action"]["answered_at"]]
