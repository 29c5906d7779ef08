"""MEMORY_LEAK_MONITORING.md: the Walker training environment."""

import io
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import yaml

from examples.common.command import Served
from examples.walker.trainer import Walker
from heapwatch.collectors import readings
from heapwatch.watch import Watch
from tests.dashboards.documents import interpolate, targets
from tests.documents import walker_numbers as numbers
from tests.documents.example import ANSWER_SECONDS, Example, own_state
from tests.documents.rows import Check, both, labels, limit, logs
from tests.documents.rules import SCRAPES, evaluate
from tests.support.repository import REPOSITORY

PYTHON = sys.executable
BODIES = {"static": 1, "dynamic": 155, "terrain": 0, "agent": 30, "unknown": 0}
STATUS = {"world_bodies": 186, "static_bodies": 1, "dynamic_bodies": 155, "total_agents": 30}
HEALTH = r"(?m)^(\d\d:\d\d:\d\d): Memory=[\d.]+MB, Bodies=186, Food=\d+, Step=\d+\n   Body Types: (.*)$"
CLEANED = r"Emergency cleanup completed in [\d.]+ s: -?[\d.]+MB freed"
SERVED = Served(port=0, host="127.0.0.1", interval=5.0, budget=0.5, port_search=False)


def health_lines(example: Example) -> None:
    """Two of them, 20 s apart."""
    example.until(lambda: len(re.findall(HEALTH, example.log())) > 1)
    (first, types), (second, _), *_ = re.findall(HEALTH, example.log())
    assert types == "Static=1, Dynamic=155, Terrain=0, Agent=30, Unknown=0"
    assert seconds_between(first, second) in range(19, 30)


def seconds_between(first: str, second: str) -> int:
    passed = datetime.strptime(second, "%H:%M:%S") - datetime.strptime(first, "%H:%M:%S")
    return passed.seconds


def baseline(example: Example) -> None:
    example.until(lambda: example.readings().by("walker_body_types_total", "type").get("agent") == 30)
    assert example.readings().by("walker_body_types_total", "type") == BODIES
    assert sum(BODIES.values()) == example.value("walker_entities_total", type="world_bodies") == 186


def own_names(example: Example) -> None:
    """The original names, beside what psutil reads of the process and of the machine."""
    process = psutil.Process(example.process.pid)
    before, found, after = process.memory_info().rss, example.readings(), process.memory_info().rss
    memory = found.value("walker_system_memory_mb")
    assert 0.99 * min(before, after) < 1e6 * memory < 1.01 * max(before, after)
    food = found.value("walker_entities_total", type="food_sources")
    assert food == found.value("trainer_entities", type="food_sources")
    assert 4 <= food <= 15, "with no leak of food"

    def cpu_agrees() -> bool:
        """Since the last reading, unless another one came between."""
        example.value("walker_system_cpu_percent")
        psutil.cpu_percent()
        time.sleep(2)
        return example.value("walker_system_cpu_percent") == pytest.approx(psutil.cpu_percent(), abs=10)

    example.until(cpu_agrees)


def replay(example: Example) -> None:
    """At most 10,000 experiences; the bytes of each object once, as Python tells them, are what it holds."""
    with stepped(40) as (walker, _):
        kept = list(walker.learner.replay)
    assert len(kept) == 40 * 30
    held = {id(one): sys.getsizeof(one) for one in kept}
    for one in kept:
        for row in (one.observation, one.next_observation):
            held |= {id(row): sys.getsizeof(row), id(row.base): sys.getsizeof(row.base)}
        held[id(one.reward)] = sys.getsizeof(one.reward)
    example.until(lambda: example.value("trainer_buffer_items", buffer="replay") == 10_000)
    assert example.value("trainer_buffer_capacity_items", buffer="replay") == 10_000
    each = sum(held.values()) / len(kept)
    example.until(lambda: example.value("trainer_buffer_bytes", buffer="replay") > 9_000 * each)
    assert example.value("trainer_buffer_bytes", buffer="replay") == pytest.approx(10_000 * each, rel=0.1)
    assert example.value("trainer_buffer_items", buffer="replay") == 10_000


def status(example: Example) -> None:
    """Each field, beside what the metrics and psutil say."""
    example.until(lambda: {"fps", "cpu_percent"} <= example.status()["performance"].keys())
    process = psutil.Process(example.process.pid)
    before, document, after = process.memory_info().rss, example.status(), process.memory_info().rss
    entities = document["entities"]
    assert {name: count for name, count in entities.items() if name in STATUS} == STATUS
    assert entities["food_sources"] in range(4, 16)
    assert entities["active_agents"] in range(20, 31)
    assert 0.99 * min(before, after) < 1e6 * document["performance"]["memory_mb"] < 1.01 * max(before, after)

    def rates_agree() -> bool:
        """Frames and CPU time between two readings, unless another one came between them."""
        first, busy = example.status(), sum(process.cpu_times()[:2])
        time.sleep(2)
        second, busy = example.status(), sum(process.cpu_times()[:2]) - busy
        seconds, now = second["timestamp"] - first["timestamp"], second["performance"]
        steps = now["step_count"] - first["performance"]["step_count"]
        frames = now["fps"] == pytest.approx(steps / seconds, rel=0.1)
        return frames and now["cpu_percent"] == pytest.approx(100 * busy / seconds, rel=0.2)

    example.until(rates_agree)


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
    assert (second - first).seconds in range(1, 20)
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
    """Above 1,500 bodies, or 2 GB, and not at them, it cleans up within 30 steps, if it was told to."""
    for bodies, rss, told in (
        (1500, 0, True),
        (1501, 0, True),
        (1501, 0, False),
        (186, 2_000_000_000, True),
        (186, 2_000_000_001, True),
        (186, 2_000_000_001, False),
    ):
        with redirect_stdout(io.StringIO()) as said, stepped(29, auto_cleanup=told) as (walker, watch):
            for index in range(bodies - 186):
                walker.ecosystem.world.CreateStaticBody(position=(5.0 * index, -50.0))
            if rss:
                walker.health._process = SimpleNamespace(memory_info=lambda rss=rss: SimpleNamespace(rss=rss))
            walker.train(watch, 30)
            left = walker.ecosystem.world.bodyCount, len(walker.ecosystem.food)
        cleaned = told and (bodies > 1500 or rss > 2e9)
        assert (left == (186, 10)) == cleaned, (bodies, rss, told)
        assert said.getvalue().count("EMERGENCY: Triggering emergency cleanup!") == cleaned
        what = f"{bodies - 186} bodies" if bodies > 186 else ""
        assert (f"EMERGENCY cleanup: {what}" in said.getvalue()) == cleaned


def by_command(example: Example) -> None:
    """With the lines of the document's sample, in its order."""
    crowd(example)
    said = example.run(PYTHON, "-m", "heapwatch", "cleanup")
    bodies, fewer, food, less = in_order(
        said, CLEANED, r"Bodies: (\d+) -> 186 \(-(\d+)\)", r"Food: (\d+) -> 10 \(-(\d+)\)"
    )
    assert (bodies - fewer, food - less) == (186, 10)
    assert example.value("trainer_bodies", type="unknown") == 0


def by_hand(example: Example) -> None:
    """The document's command, as it is printed, where the example was told to accept it; and else not."""
    assert "error" in posted(example.url.rpartition(":")[2])
    for told in (False, True):
        with redirect_stdout(io.StringIO()), stepped(1, local_cleanup=told) as (walker, watch):
            answer = posted(watch.port, lambda: walker.train(watch, walker.steps + 1))
            assert ("error" in answer) != told
            assert (len(walker.ecosystem.food) <= 15) == told
            if told:
                assert answer["action"] == "emergency"
                assert answer["after"]["entities"]["food_sources"] == 10
                assert "error" in posted(watch.port, options="-H Origin:http://localhost")
    refused = subprocess.run(
        [PYTHON, "-m", "examples.walker", "--local-cleanup", "--host=0.0.0.0", "--port=0"],
        env=example.environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert "without a token are accepted only on" in refused.stderr.splitlines()[-1]


def posted(
    port: int | str | None, meanwhile: Callable[[], object] = lambda: None, options: str = ""
) -> dict[str, Any]:
    """The answer to the document's command, on this port, while the trainer trains."""
    command = f"curl -s -X POST http://localhost:{port}/force_cleanup {options}"
    with subprocess.Popen(command.split(), stdout=subprocess.PIPE) as curl:
        while curl.poll() is None:
            meanwhile()
            time.sleep(0.01)
        answer: dict[str, Any] = json.loads(curl.stdout.read())
    return answer


def food_in_the_log(example: Example) -> None:
    crowd(example)
    line = re.compile(r"   WARNING: food_sources = (\d+) \((>=? \d+)\)")
    example.until(lambda: line.search(example.log()))
    for count, exceeded in line.findall(example.log()):
        assert exceeded == (">= 50" if int(count) >= 50 else "> 30")
        assert int(count) > 30
    example.until(lambda: re.search(r"   (WARNING|CRITICAL): world_bodies = \d+ \(>=", example.log()))


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
                for severity, value in (("warning", 500), ("critical", 1000), ("emergency", 1501))
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
    in_order(
        said,
        r"Food=\d+, Step=\d+",
        r"CRITICAL: world_bodies = \d+ \(>= 501\)",
        r"WARNING: food_sources = \d+ \(>= 50\)",
    )


def in_order(said: str, *lines: str) -> list[int]:
    """Check that these lines follow each other, as in the document's samples; the numbers in them."""
    found = re.search(r"\n(?:.*\n)*\s*".join(lines), said)
    assert found, said
    return [int(number) for number in found.groups()]


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
        assert len(walker.ecosystem.food) == 30
    assert said.getvalue().count("Routine cleanup: ") == 1
    crowd(example)
    answer = example.force_cleanup("regular")
    assert answer["after"]["entities"]["food_sources"] == 30
    assert answer["removed"]["bodies"] > 0


def schedule(_example: Example) -> None:
    """Exactly every 18,000 steps, over three periods in which nothing moves."""
    done: list[tuple[int, str]] = []
    with redirect_stdout(io.StringIO()), stepped(0) as (walker, watch):
        walker.cleaner.clean = lambda action, resource: done.append((walker.steps, action)) or {}
        world, learner = walker.ecosystem, walker.learner
        world.step, world.observe = lambda actions: ((), ()), lambda: None
        learner.act, learner.learn = lambda observations: [], lambda: None
        world.evolve, learner.end_generation = lambda: None, lambda: None
        walker.train(watch, 3 * 18_000 + 17_999)
    assert done == [(18_000, "regular"), (36_000, "regular"), (54_000, "regular")]


def emergency(example: Example) -> None:
    crowd(example)
    replay = example.value("trainer_buffer_items", buffer="replay")
    answer = example.force_cleanup()
    before, after = answer["before"], answer["after"]
    assert after["bodies"] == 186
    assert before["bodies"] - after["bodies"] == answer["removed"]["bodies"] > 0
    assert after["entities"]["food_sources"] == 10
    assert before["entities"]["food_sources"] - 10 == answer["removed"]["food_sources"]
    assert after["events"] == {"consumption": 0, "death": 0, "predation": 0}
    saved = (before["resident_memory_bytes"] - after["resident_memory_bytes"]) / 1e6
    assert answer["memory_saved_mb"] == pytest.approx(saved, abs=0.001)
    assert answer["after"]["buffers"]["replay"] >= replay  # healthy, so it is left alone


def auto_cleanup(example: Example) -> None:
    """With the option, and with no cleanup without it."""
    with example.leaking(unknown=6000.0):
        example.until(lambda: example.status()["entities"]["world_bodies"] > 500)
    arguments = ("--count=4", "--interval=2", "--bodies-warning=300", "--bodies-critical=400")
    said = example.run("bash", "scripts/start_monitoring.sh", *arguments)
    assert "CRITICAL: world_bodies" in said
    assert "triggering" not in said
    assert not re.search(CLEANED, said)
    assert example.status()["entities"]["world_bodies"] > 500
    said = example.run("bash", "scripts/start_monitoring.sh", "--auto-cleanup", *arguments)
    in_order(
        said,
        r"CRITICAL: world_bodies = \d+ \(>= 400\)",
        "EMERGENCY: triggering an emergency cleanup",
        CLEANED,
        r"Bodies: \d+ -> 186 \(-\d+\)",
        "ENDED: world_bodies is below its limit",
    )


CHECKS: dict[str, Check] = {
    "body types in the log, `unknown` included": both(health_lines, numbers.own_lines),
    "186 bodies: 1 static, 155 dynamic, 30 agents, no terrain, none unknown": baseline,
    "`walker_system_memory_mb`, `walker_system_cpu_percent`, `walker_entities_total`": own_names,
    "events: consumption, death, predation": labels(
        "trainer_event_list_items", "list", "consumption", "death", "predation"
    ),
    "replay buffer memory, of at most 10,000 experiences": replay,
    "event lists and replay buffer are limited": numbers.kept,
    "memory: warning at 1000 MB, critical at 1500, emergency above 2 GB": limit(
        "walker", "memory", "trainer", warning=1e9, critical=1.5e9, emergency=2e9
    ),
    "bodies: warning at 500, critical at 1000, emergency above 1500": limit(
        "walker", "bodies", "all", warning=500, critical=1000, emergency=1501
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
        numbers.own_log_when_aggressive,
    ),
    "the same limits and growth a minute in the trainer's own log": numbers.own_log,
    "`/performance_status`: entities, agents, steps, memory, CPU, frames per second": status,
    "`monitor_system_health.py`: a line a sample, and body types": both(console, numbers.monitor_samples),
    "its options: interval, memory and bodies limits": both(options, numbers.monitor_options),
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
    "regular cleanup: at most 30 food sources, orphans destroyed": both(routine, schedule),
    "emergency cleanup: 10 food sources, no events, `memory_saved_mb`": emergency,
    "a cleanup by hand, as it is printed": both(by_command, by_hand),
    "emergency by the trainer itself, above 2 GB or 1,500 bodies": both(by_itself, numbers.own_emergency),
    "auto-cleanup with what it freed": auto_cleanup,
    "cleanups in the trainer's log": logs("EMERGENCY cleanup", "Routine cleanup"),
}
