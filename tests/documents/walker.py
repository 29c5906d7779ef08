"""MEMORY_LEAK_MONITORING.md: the Walker training environment."""

import io
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import psutil
import pytest
import yaml

from examples.common.command import Served
from examples.walker.trainer import Walker
from heapwatch.collectors import readings
from heapwatch.watch import Watch
from tests.dashboards.documents import interpolate, targets
from tests.documents.example import ANSWER_SECONDS, Example, own_state
from tests.documents.rows import Check, both, labels, limit, logs
from tests.documents.rules import SCRAPES, evaluate
from tests.support.repository import REPOSITORY

PYTHON = sys.executable
BODIES = {"static": 1, "dynamic": 155, "terrain": 0, "agent": 30, "unknown": 0}
STATUS = ("world_bodies", "food_sources", "static_bodies", "dynamic_bodies", "total_agents", "active_agents")
HEALTH = r"(?m)^(\d\d:\d\d:\d\d): Memory=[\d.]+MB, Bodies=186, Food=\d+, Step=\d+\n   Body Types: (.*)$"
SERVED = Served(port=0, host="127.0.0.1", interval=5.0, budget=0.5, port_search=False)


def health_lines(example: Example) -> None:
    """Two of them, 20 s apart."""
    example.until(lambda: len(re.findall(HEALTH, example.log())) > 1)
    (first, types), (second, _), *_ = re.findall(HEALTH, example.log())
    assert types == "Static=1, Dynamic=155, Terrain=0, Agent=30, Unknown=0"
    passed = datetime.strptime(second, "%H:%M:%S") - datetime.strptime(first, "%H:%M:%S")
    assert passed.seconds >= 19


def baseline(example: Example) -> None:
    example.until(lambda: example.readings().by("walker_body_types_total", "type").get("agent") == 30)
    found = example.readings().by("walker_body_types_total", "type")
    assert {kind: found.get(kind, 0) for kind in BODIES} == BODIES
    assert example.value("walker_entities_total", type="world_bodies") == 186


def own_names(example: Example) -> None:
    example.until(lambda: "cpu_percent" in example.status()["performance"])
    resident = psutil.Process(example.process.pid).memory_info().rss / 1e6
    assert example.value("walker_system_memory_mb") == pytest.approx(resident, rel=0.1)
    assert 0 <= example.value("walker_system_cpu_percent") <= 100  # of all cores
    assert example.status()["performance"]["cpu_percent_of"] == "the trainer's process; 100 is one core"
    assert 5 <= example.value("walker_entities_total", type="food_sources") <= 20


def replay(example: Example) -> None:
    """Two observations of 14 numbers each, and what holds them."""
    example.until(lambda: example.value("trainer_buffer_items", buffer="replay") > 300)
    now = example.readings()
    held, items = (now.value(f"trainer_buffer_{what}", buffer="replay") for what in ("bytes", "items"))
    assert 2 * 14 * 4 < held / items < 2000


def status(example: Example) -> None:
    example.until(lambda: "fps" in example.status()["performance"])
    document = example.status()
    assert set(STATUS) <= document["entities"].keys()
    assert {"step_count", "memory_mb", "cpu_percent", "fps"} <= document["performance"].keys()
    assert document["entities"]["active_agents"] == document["entities"]["total_agents"] == 30


def monitor(example: Example, *options: str) -> str:
    return example.run(PYTHON, "scripts/monitor_system_health.py", *(options or ("--count=1",)))


def console(example: Example) -> None:
    said = monitor(example)
    assert re.search(r"\d\d:\d\d:\d\d: Memory=[\d.]+MB, Bodies=186, Food=\d+, Step=\d+", said), said
    assert "Body types: Static=1, Dynamic=155, Terrain=0, Agent=30, Unknown=0" in said


def options(example: Example) -> None:
    """Each option in both directions: a limit below the level is exceeded, one above it is not."""
    far = (
        "--memory-warning=60000",
        "--memory-critical=90000",
        "--bodies-warning=300",
        "--bodies-critical=500",
    )
    said = monitor(example, "--count=2", "--interval=2", *far)
    assert "memory = " not in said
    assert "world_bodies = " not in said
    first, second = (datetime.strptime(time, "%H:%M:%S") for time in re.findall(r"(\S+): Memory=", said))
    assert 1 <= (second - first).seconds < 20
    for limits, expected in (
        (("--memory-warning=1", "--memory-critical=90000"), r"WARNING: memory = [\d.]+MB \(>= 1.0MB\)"),
        (("--memory-warning=1", "--memory-critical=2"), r"CRITICAL: memory = [\d.]+MB \(>= 2.0MB\)"),
        (("--bodies-warning=100", "--bodies-critical=500"), r"WARNING: world_bodies = 186 \(>= 100\)"),
        (("--bodies-warning=100", "--bodies-critical=150"), r"CRITICAL: world_bodies = 186 \(>= 150\)"),
    ):
        said = monitor(example, "--count=1", *limits)
        assert re.search(expected, said), said


def aggressive(example: Example) -> None:
    """More than 600 MB and 300 bodies are within the walker's limits, and above these."""
    script = ("bash", "scripts/start_monitoring.sh", "--count=1")
    with example.leaking(unknown=240.0, memory=600.0):
        example.until(lambda: example.status()["performance"]["memory_mb"] > 620)
        example.until(lambda: example.status()["entities"]["world_bodies"] > 310)
    usual = example.run(*script)
    said = example.run(*script, "--auto-cleanup", "--aggressive-thresholds")
    assert not re.search(r"\(>= 300\)|\(>= [69]00.0MB\)", usual), usual
    assert re.search(r"world_bodies = \d+ \(>= [35]00\)", said), said
    assert re.search(r"memory = [\d.]+MB \(>= [69]00.0MB\)", said), said
    example.force_cleanup()
    example.until(lambda: example.status()["entities"]["world_bodies"] == 186)


def mlflow(_example: Example) -> None:
    """What MLflow has of the example's own run after a generation."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        patch.setenv("MLFLOW_TRACKING_URI", uri := (Path(folder) / "runs").as_uri())
        with stepped(2, 1799):
            pass
        from mlflow import MlflowClient, end_run

        end_run()
        client = MlflowClient(uri)
        (run,) = client.search_runs([one.experiment_id for one in client.search_experiments()])
    counts = {"static bodies": 1, "dynamic bodies": 155, "agent bodies": 30}
    logged = {name: run.data.metrics.get(f"memory/{name}/count") for name in counts}
    assert logged == counts
    assert run.data.metrics["memory/food_sources/count"] >= 40
    assert {f"memory/{name} events/count" for name in ("consumption", "death", "predation")} <= set(
        run.data.metrics
    )


def by_itself(_example: Example) -> None:
    """Past 1,500 bodies, or 2 GB, the trainer cleans up without a monitor, if it was told to."""
    for reported in (False, True):
        with redirect_stdout(io.StringIO()) as said, stepped(29, auto_cleanup=reported) as (walker, watch):
            for index in range(1400):
                walker.ecosystem.world.CreateStaticBody(position=(5.0 * index, -50.0))
            walker.train(watch, 30)
            assert (walker.ecosystem.world.bodyCount == 186) == reported
        assert ("EMERGENCY: Triggering emergency cleanup!" in said.getvalue()) == reported
        assert ("EMERGENCY cleanup: 1400 bodies" in said.getvalue()) == reported
    for rss in (1_990_000_000, 2_010_000_000):
        with redirect_stdout(io.StringIO()) as said, stepped(29, auto_cleanup=True) as (walker, watch):
            used = SimpleNamespace(rss=rss)
            walker.health._process = SimpleNamespace(memory_info=lambda used=used: used)
            walker.train(watch, 30)
        assert ("EMERGENCY: Triggering emergency cleanup!" in said.getvalue()) == (rss > 2e9)


def by_command(example: Example) -> None:
    with example.leaking(unknown=3000.0):
        example.until(lambda: example.value("trainer_bodies", type="unknown") > 60)
    said = example.run(PYTHON, "-m", "heapwatch", "cleanup")
    assert re.search(r"Emergency cleanup completed in [\d.]+ s: -?[\d.]+MB freed", said), said
    assert example.value("trainer_bodies", type="unknown") == 0


def food_in_the_log(example: Example) -> None:
    crowd(example)
    line = re.compile(r"   WARNING: food_sources = (\d+) \(> 30\)")
    example.until(lambda: line.search(example.log()))
    assert all(int(count) > 30 for count in line.findall(example.log()))


def queries(title: str) -> list[str]:
    """The queries of a panel, as its page sends them."""
    pages = ("heapwatch-trainer", "heapwatch-world")
    found = [one for one in targets() if one.dashboard in pages and one.panel["title"] == title]
    assert found, f"no panel is called {title}"
    first = found[0].panel
    return [f"({interpolate(one.target['expr'])})" for one in found if one.panel is first]


OF_BODIES = (
    """label_replace(label_replace(vector(1), "resource", "bodies", "", ""), "component", "all", "", "")"""
)


def panels(example: Example) -> None:
    """What the queries return for what the example exposes, and with a leak and a limit that is exceeded."""
    text = example.metrics()
    bodies = example.readings().by("trainer_bodies", "type")
    resident = example.value("trainer_process_resident_memory_bytes", role="trainer")
    (by_type, *_), (growth, *_), (firing, *_) = map(
        queries, ("Bodies by type", "Body growth per minute by type", "Firing alerts")
    )
    paths, _, _, rest, *_ = queries("Memory explained")
    evaluate(
        text,
        {
            by_type: {f'{{type="{kind}"}}': count for kind, count in bodies.items()},
            f"count({paths}) > bool 0": {"{}": 1},
            f"{rest} < bool {resident}": {"{}": 1},
            f"{queries('Limits')[1]} and on (resource, component) {OF_BODIES}": {
                f'{{component="all", resource="bodies", severity="{severity}"}}': value
                for severity, value in (("warning", 500), ("critical", 1000), ("emergency", 1500))
            },
        },
    )
    evaluate(
        text,
        {
            f"round(max by (component) ({growth}) > 1)": {'{component="unknown"}': 20},
            f'count({firing} and on (component) ALERTS{{alertname="TrainerLimitExceeded"}}) > bool 0': {
                "{}": 1
            },
        },
        {
            'trainer_bodies{type="unknown"}': [5.0 * scrape for scrape in range(SCRAPES)],
            'trainer_bodies{type="static"}': [301.0] * SCRAPES,
        },
    )


def container(example: Example) -> None:
    """The health check of the container, with the trainer as it runs and while one stands still."""
    with urllib.request.urlopen(f"{example.url}/readyz", timeout=ANSWER_SECONDS) as answer:
        assert answer.status == 200
    compose = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
    _, _, *check = compose["services"]["walker-training-app"]["healthcheck"]["test"]
    assert healthy(check, example.url)
    with stepped(1) as (_, watch), pytest.MonkeyPatch.context() as patch:
        address = f"http://127.0.0.1:{watch.port}"
        assert healthy(check, address)
        patch.setattr(readings, "STALLED_SECONDS", 0.1)
        patch.setattr(readings, "PAUSES", 0)
        example.until(lambda: answer_code(f"{address}/readyz") == 503)
        assert not healthy(check, address)


def healthy(check: list[str], url: str) -> bool:
    """Whether a health check of the Compose file passes for a trainer at this address."""
    return not subprocess.run(
        [PYTHON, *(part.replace("http://127.0.0.1:7777", url) for part in check)],
        capture_output=True,
        timeout=ANSWER_SECONDS,
        check=False,
    ).returncode


def answer_code(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@contextmanager
def stepped(steps: int, began: int = 0, **options: bool) -> Iterator[tuple[Walker, Watch]]:
    """The example in this process: it has trained for a few steps, and stands still."""
    with own_state():
        walker = Walker(rate=None, **options)
        walker.steps = began
        walker.ecosystem.food.extend([1000.0] * 40)  # out of reach
        with walker.watched(SERVED) as watch:
            walker.train(watch, began + steps)
            yield walker, watch


def crowd(example: Example) -> None:
    """Have it leak until limits of bodies and food are exceeded, if they are not."""

    def crowded() -> bool:
        entities = example.status()["entities"]
        unknown = example.value("trainer_bodies", type="unknown")
        return entities["world_bodies"] > 560 and entities["food_sources"] > 60 and unknown > 60

    if not crowded():
        with example.leaking(static=3000.0, dynamic=3000.0, unknown=3000.0, food=3000.0):
            example.until(crowded)


def growth(example: Example) -> None:
    """Each type grows by what leaks of it, and by nothing else."""
    crowd(example)
    found = example.readings().by("trainer_bodies", "type")
    assert found["unknown"] > 60
    assert found["static"] > 61
    assert found["dynamic"] > 215
    assert found["agent"] == 30


def alerts(example: Example) -> None:
    crowd(example)
    found = {
        (alert["severity"], alert["resource"], alert["component"], alert["limit"])
        for alert in example.status()["alerts"]
        if alert["kind"] == "threshold"
    }
    assert ("warning", "entities", "food_sources", 50) in found
    assert {limit for _, resource, name, limit in found if (resource, name) == ("bodies", "all")} <= {
        500,
        1000,
    }
    assert [name for _, resource, name, _ in found if resource == "bodies"].count("all") == 1


def alert_lines(example: Example) -> None:
    crowd(example)
    said = example.run(PYTHON, "scripts/monitor_system_health.py", "--count=1", "--bodies-critical=501")
    assert re.search(r"CRITICAL: world_bodies = \d+ \(>= 501\)", said), said
    assert re.search(r"WARNING: food_sources = \d+ \(>= 50\)", said), said


def orphans(example: Example) -> None:
    """The log tells the same counts as the metrics, by type."""
    crowd(example)

    def reported() -> bool:
        now = {kind: int(example.value("trainer_bodies", type=kind)) for kind in BODIES if kind != "terrain"}
        types = "Static={static}, Dynamic={dynamic}, Terrain=0, Agent={agent}, Unknown={unknown}".format(
            **now
        )
        return f"Body Types: {types}\n   ORPHANS: {now['unknown']} bodies that nobody owns" in example.log()

    example.until(reported)


def for_bodies(example: Example) -> None:
    crowd(example)
    food = example.status()["entities"]["food_sources"]
    answer = example.force_cleanup("regular", resource="bodies", component="static")
    assert answer["removed"].keys() == {"bodies"}
    assert answer["after"]["entities"]["food_sources"] >= food > 50
    assert example.value("trainer_bodies", type="unknown") == 0


def routine(example: Example) -> None:
    """On request; and in the trainer's own loop, every ten minutes of 30 steps a second."""
    with redirect_stdout(io.StringIO()) as said, stepped(2, 17_997) as (walker, watch):
        assert len(walker.ecosystem.food) > 30
        walker.train(watch, 18_000)
        assert len(walker.ecosystem.food) <= 30
    assert said.getvalue().count("Routine cleanup: ") == 1
    crowd(example)
    answer = example.force_cleanup("regular")
    assert answer["after"]["entities"]["food_sources"] <= 30
    assert answer["removed"]["bodies"] > 0


def emergency(example: Example) -> None:
    crowd(example)
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
        "--count=4",
        "--interval=2",
        "--auto-cleanup",
        "--bodies-warning=300",
        "--bodies-critical=400",
    )
    said = example.run("bash", "scripts/start_monitoring.sh", *arguments)
    assert "EMERGENCY: triggering an emergency cleanup" in said
    assert re.search(r"Emergency cleanup completed in [\d.]+ s: -?[\d.]+MB freed", said), said
    assert re.search(r"Bodies: \d+ -> 186 \(-\d+\)", said), said
    assert "ENDED: world_bodies is below its limit" in said


CHECKS: dict[str, Check] = {
    "body types in the log, `unknown` included": health_lines,
    "186 bodies: 1 static, 155 dynamic, 30 agents, no terrain, none unknown": baseline,
    "`walker_system_memory_mb`, `walker_system_cpu_percent`, `walker_entities_total`": own_names,
    "events: consumption, death, predation": labels(
        "trainer_event_list_items", "list", "consumption", "death", "predation"
    ),
    "replay buffer memory": replay,
    "memory: warning at 1000 MB, critical at 1500, emergency above 2 GB": limit(
        "walker", "memory", "trainer", warning=1e9, critical=1.5e9, emergency=2e9
    ),
    "bodies: warning at 500, critical at 1000, emergency at 1500": limit(
        "walker", "bodies", "all", warning=500, critical=1000, emergency=1500
    ),
    "static bodies: critical at 300": limit("walker", "bodies", "static", critical=300),
    "food: warning at 50, growth above 5 a minute": limit(
        "walker", "entities", "food_sources", warning=50, minute=5
    ),
    "growth above 10 bodies a minute": limit("walker", "bodies", "all", minute=10),
    "growth above 20 MB a minute": limit("walker", "memory", "trainer", minute=20e6),
    "aggressive thresholds: 600 and 900 MB, 300 and 500 bodies": both(
        limit("walker-aggressive", "memory", "trainer", warning=600e6, critical=900e6),
        limit("walker-aggressive", "bodies", "all", warning=300, critical=500),
    ),
    "`/performance_status`: entities, agents, steps, memory, CPU, frames per second": status,
    "`monitor_system_health.py`: a line a sample, and body types": console,
    "its options: interval, memory and bodies limits": options,
    "`start_monitoring.sh --auto-cleanup --aggressive-thresholds`": aggressive,
    "MLflow: performance metrics, with bodies, food and events": mlflow,
    "Grafana: memory, body types, growth, alert thresholds": panels,
    "Docker: container health": container,
    "leaking bodies by type": growth,
    "alerts in the status": alerts,
    "`CRITICAL: world_bodies`, `WARNING: food_sources`": alert_lines,
    "a warning above 30 food sources": food_in_the_log,
    "orphaned bodies in the log": orphans,
    "cleanup does what the alert needs": for_bodies,
    "regular cleanup: at most 30 food sources, orphans destroyed": routine,
    "emergency cleanup: 10 food sources, no events, `memory_saved_mb`": emergency,
    "a cleanup by hand, as it is printed": by_command,
    "emergency by the trainer itself, above 2 GB or 1,500 bodies": by_itself,
    "auto-cleanup with what it freed": auto_cleanup,
    "cleanups in the trainer's log": logs("EMERGENCY cleanup", "Routine cleanup"),
}
