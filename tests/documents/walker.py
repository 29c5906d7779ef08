"""MEMORY_LEAK_MONITORING.md: the Walker training environment."""

import json
import re
import sys
import urllib.request

import yaml

from heapwatch.recording.points import Point
from heapwatch.trackers.values import CycleLogger
from tests.documents.example import Example
from tests.documents.rows import Row, exposes, labels, limit, logs
from tests.repository import REPOSITORY

PYTHON = sys.executable
BODIES = {"static": 1, "dynamic": 155, "terrain": 0, "agent": 30, "unknown": 0}
STATUS = ("world_bodies", "food_sources", "static_bodies", "dynamic_bodies", "total_agents", "active_agents")


def baseline(example: Example) -> None:
    example.until(lambda: example.readings().by("walker_body_types_total", "type").get("agent") == 30)
    found = example.readings().by("walker_body_types_total", "type")
    assert {kind: found.get(kind, 0) for kind in BODIES} == BODIES
    assert example.value("walker_entities_total", type="world_bodies") == 186


def status(example: Example) -> None:
    example.until(lambda: "fps" in example.status()["performance"])
    document = example.status()
    assert set(STATUS) <= document["entities"].keys()
    assert {"step_count", "memory_mb", "cpu_percent", "fps"} <= document["performance"].keys()
    assert document["entities"]["active_agents"] == document["entities"]["total_agents"] == 30


def console(example: Example) -> None:
    said = example.run(PYTHON, "scripts/monitor_system_health.py", "--count=1")
    assert re.search(r"\d\d:\d\d:\d\d: Memory=[\d.]+MB, Bodies=186, Food=\d+, Step=\d+", said), said
    assert "Body types: Static=1, Dynamic=155, Terrain=0, Agent=30, Unknown=0" in said


def start_script(example: Example) -> None:
    said = example.run(
        "bash", "scripts/start_monitoring.sh", "--auto-cleanup", "--aggressive-thresholds", "--count=1"
    )
    assert "Bodies=" in said
    assert "usage" not in said


def options(example: Example) -> None:
    limits = (
        "--memory-warning=60000",
        "--memory-critical=90000",
        "--bodies-warning=300",
        "--bodies-critical=500",
    )
    assert "Bodies=" in example.run(
        PYTHON, "scripts/monitor_system_health.py", "--count=1", "--interval=20", *limits
    )


def mlflow(_example: Example) -> None:
    logged: list[str] = []
    items = {"unknown bodies": 3.0, "food_sources": 6.0, "death events": 4.0}
    CycleLogger("mlflow", lambda values, _: logged.extend(values)).take(
        Point(0.0, "cycle", 1e9, progress={"generation": 1}, items=items)
    )
    assert {f"memory/{name}/count" for name in items} <= set(logged)


def panels(_example: Example) -> None:
    titles = []
    for name in ("trainer", "world"):
        page = json.loads((REPOSITORY / "dashboards" / "generated" / f"heapwatch-{name}.json").read_text())
        rows = [*page["panels"], *(inner for row in page["panels"] for inner in row.get("panels", ()))]
        titles += [panel["title"] for panel in rows]
    assert {"Memory explained", "Bodies by type", "Body growth per minute by type", "Firing alerts"} <= set(
        titles
    )


def container(example: Example) -> None:
    compose = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
    checks = [str(service.get("healthcheck", "")) for service in compose["services"].values()]
    assert any("readyz" in check for check in checks)
    with urllib.request.urlopen(f"{example.url}/readyz", timeout=15) as answer:
        assert answer.status == 200


def growth(example: Example) -> None:
    bodies = "world_bodies"
    with example.leaking(static=600.0, dynamic=600.0, unknown=600.0, food=300.0):
        example.until(lambda: example.status()["entities"][bodies] > 560)
    assert example.value("trainer_bodies", type="unknown") > 60


def alerts(example: Example) -> None:
    found = {(alert["resource"], alert["component"]) for alert in example.status()["alerts"]}
    assert {("bodies", "all"), ("entities", "food_sources")} <= found


def alert_lines(example: Example) -> None:
    said = example.run(PYTHON, "scripts/monitor_system_health.py", "--count=1", "--bodies-critical=501")
    assert re.search(r"CRITICAL: world_bodies = \d+ \(>= 501\)", said), said
    assert re.search(r"WARNING: food_sources = \d+ \(>= 50\)", said), said


def for_bodies(example: Example) -> None:
    food = example.status()["entities"]["food_sources"]
    answer = example.force_cleanup("regular", resource="bodies", component="static")
    assert answer["removed"].keys() == {"bodies"}
    assert answer["after"]["entities"]["food_sources"] >= food > 50
    with example.leaking(unknown=600.0):  # for the cleanups that follow
        example.until(lambda: example.value("trainer_bodies", type="unknown") > 60)


def routine(example: Example) -> None:
    answer = example.force_cleanup("regular")
    assert answer["after"]["entities"]["food_sources"] <= 30
    assert answer["removed"]["bodies"] > 0


def emergency(example: Example) -> None:
    replay = example.value("trainer_buffer_items", buffer="replay")
    answer = example.force_cleanup()
    assert answer["after"]["bodies"] <= 500
    assert answer["after"]["entities"]["food_sources"] <= 10
    assert not any(answer["after"]["events"].values())
    assert "memory_saved_mb" in answer
    assert answer["after"]["buffers"]["replay"] >= replay  # healthy, so it is left alone


def auto_cleanup(example: Example) -> None:
    with example.leaking(unknown=6000.0):
        example.until(lambda: example.status()["entities"]["world_bodies"] > 500)
    arguments = (
        "--count=3",
        "--interval=2",
        "--auto-cleanup",
        "--bodies-warning=300",
        "--bodies-critical=400",
    )
    said = example.run("bash", "scripts/start_monitoring.sh", *arguments)
    assert "EMERGENCY: triggering an emergency cleanup" in said
    assert re.search(r"Emergency cleanup completed in [\d.]+ s: -?[\d.]+MB freed", said), said
    assert re.search(r"Bodies: \d+ -> 186 \(-\d+\)", said), said
    assert "ENDED: world_bodies is back at 186" in said


ROWS = (
    Row(
        "body types in the log, `unknown` included",
        "the trainer's own health line, every 20 s",
        "`python -m examples.walker`",
        logs("Bodies=186", "Body Types: Static=1, Agent=30, Dynamic=155"),
    ),
    Row(
        "186 bodies: 1 static, 155 dynamic, 30 agents, no terrain, none unknown",
        "`walker_body_types_total`, `trainer_bodies`",
        "`curl URL/metrics`",
        baseline,
    ),
    Row(
        "`walker_system_memory_mb`, `walker_system_cpu_percent`, `walker_entities_total`",
        "the same names",
        "`curl URL/metrics`",
        exposes("walker_system_memory_mb", "walker_system_cpu_percent", "walker_entities_total"),
    ),
    Row(
        "events: consumption, death, predation",
        "`trainer_event_list_items`",
        "`curl URL/metrics`",
        labels("trainer_event_list_items", "list", "consumption", "death", "predation"),
    ),
    Row(
        "replay buffer memory",
        "`trainer_buffer_bytes`",
        "`curl URL/metrics`",
        labels("trainer_buffer_bytes", "buffer", "replay"),
    ),
    Row(
        "memory: warning at 1000 MB, critical at 1500, emergency above 2 GB",
        "profile `walker`",
        "`docs/alerting.md`",
        limit("walker", "memory", "trainer", warning=1e9, critical=1.5e9, emergency=2e9),
    ),
    Row(
        "bodies: warning at 500, critical at 1000, emergency at 1500",
        "profile `walker`",
        "`docs/alerting.md`",
        limit("walker", "bodies", "all", warning=500, critical=1000, emergency=1500),
    ),
    Row(
        "static bodies: critical at 300",
        "profile `walker`",
        "`docs/alerting.md`",
        limit("walker", "bodies", "static", critical=300),
    ),
    Row(
        "food: warning at 50, growth above 5 a minute",
        "profile `walker`",
        "`docs/alerting.md`",
        limit("walker", "entities", "food_sources", warning=50, minute=5),
    ),
    Row(
        "growth above 10 bodies a minute",
        "profile `walker`",
        "`docs/alerting.md`",
        limit("walker", "bodies", "all", minute=10),
    ),
    Row(
        "growth above 20 MB a minute",
        "profile `walker`",
        "`docs/alerting.md`",
        limit("walker", "memory", "trainer", minute=20e6),
    ),
    Row(
        "aggressive thresholds: 600 and 900 MB, 300 and 500 bodies",
        "profile `walker-aggressive`",
        "`make up PROFILE=aggressive`",
        limit("walker-aggressive", "bodies", "all", warning=300, critical=500),
    ),
    Row(
        "`/performance_status`: entities, agents, steps, memory, CPU, frames per second",
        "the same fields",
        "`curl URL/performance_status`",
        status,
    ),
    Row(
        "`monitor_system_health.py`: a line a sample, and body types",
        "`heapwatch monitor`; the script calls it",
        "`scripts/monitor_system_health.py`",
        console,
    ),
    Row(
        "its options: interval, memory and bodies limits",
        "the same options",
        "`scripts/monitor_system_health.py --bodies-warning 300`",
        options,
    ),
    Row(
        "`start_monitoring.sh --auto-cleanup --aggressive-thresholds`",
        "the same script",
        "`scripts/start_monitoring.sh --auto-cleanup`",
        start_script,
    ),
    Row(
        "MLflow: performance metrics, with bodies, food and events",
        "`heapwatch.trackers.mlflow.log_memory`",
        "`docs/frameworks.md`",
        mlflow,
    ),
    Row(
        "Grafana: memory, body types, growth, alert thresholds",
        "pages Trainer and World on port 3009",
        "`make up`",
        panels,
    ),
    Row(
        "Docker: container health",
        "`/readyz` answers 503 while training stands still",
        "`docker compose ps`",
        container,
    ),
    Row(
        "leaking bodies by type",
        "`trainer_bodies`, by owner",
        "`python -m examples.leak walker unknown=60`",
        growth,
    ),
    Row(
        "alerts in the status",
        "`alerts`, never empty while a limit is exceeded",
        "`curl URL/performance_status`",
        alerts,
    ),
    Row(
        "`CRITICAL: world_bodies`, `WARNING: food_sources`",
        "the same lines of `heapwatch monitor`",
        "`heapwatch monitor`",
        alert_lines,
    ),
    Row(
        "orphaned bodies in the log",
        "`ORPHANS` of the trainer's own log",
        "`python -m examples.walker`",
        logs("ORPHANS"),
    ),
    Row(
        "cleanup does what the alert needs",
        "`target` of a cleanup function: a regular cleanup for bodies leaves food, events and replay alone",
        '`POST /force_cleanup` with `"action": "regular", "resource": "bodies"`',
        for_bodies,
    ),
    Row(
        "regular cleanup: at most 30 food sources, orphans destroyed",
        "every ten minutes, and on request",
        '`POST /force_cleanup` with `"action": "regular"`',
        routine,
    ),
    Row(
        "emergency cleanup: 10 food sources, no events, `memory_saved_mb`",
        "likewise; a replay buffer within its bound stays",
        "`curl -X POST URL/force_cleanup`",
        emergency,
    ),
    Row(
        "auto-cleanup with what it freed",
        "`--auto-cleanup`",
        "`scripts/start_monitoring.sh --auto-cleanup`",
        auto_cleanup,
    ),
    Row(
        "cleanups in the trainer's log",
        "`EMERGENCY cleanup`, `Routine cleanup`",
        "`python -m examples.walker`",
        logs("EMERGENCY cleanup", "Routine cleanup"),
    ),
)
