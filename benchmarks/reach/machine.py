"""Jobs of many processes: what `explain` without a name, `run`, `top`, `node` and `ray` say of them."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import Claim, Table
from benchmarks.reach.entered import PROGRAMS
from benchmarks.reach.watched import Document, Watched, is_at
from benchmarks.running import started
from heapwatch.errors import Unreachable
from heapwatch.http.client import get_json
from tests.support.ports import free_port

_JOB = str(PROGRAMS / "job.py")
_SILENT: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
_SETTLED_SECONDS = 75.0  # after it a program has loaded its modules
_RUN_PATIENCE, _NODE_PATIENCE = 600.0, 1200.0
_STEPS_SECONDS = 60.0
_SERIOUS = ("leak", "will not fit")
_FILLED = "self.trajectories.append"


@contextmanager
def job(kind: str, *arguments: str, steady: bool = False, steps: Path | None = None) -> Iterator[None]:
    """A job, which has run for a while."""
    environment = {"JOB": "steady" if steady else "", **({"STEPS": str(steps)} if steps else {})}
    with started([sys.executable, _JOB, kind, *arguments], environment, patience=5.0, **_SILENT):
        time.sleep(_SETTLED_SECONDS)
        yield


@contextmanager
def cluster() -> Iterator[str]:
    """A Ray cluster of two nodes; yields its address."""
    command = [sys.executable, _JOB, "cluster"]
    with started(
        command, patience=10.0, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as nodes:
        assert nodes.stdout is not None
        yield next(line.strip() for line in nodes.stdout if line[:1].isdigit() and " " not in line)


def explained() -> tuple[Document, float, float]:
    """What `heapwatch explain` without a name says, after how many seconds, and its CPU seconds."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "heapwatch", "explain", "--json", "--seconds", "240"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), time.monotonic() - began, spent


def by_explain(program: str, line: str) -> tuple[str, bool]:
    """The name that `explain` finds, and whether it is right."""
    document, seconds, spent = explained()
    found = [finding for finding in document["findings"] if finding["path"] and is_at(finding, program, line)]
    if not found:
        return f"{document['verdict']}: {document['message'][:120]}", False
    name = f"`{found[0]['path']}` after {seconds:.0f} s, {spent:.1f} s of CPU"
    return f"{document['verdict']}: {name}, in {document['entered']['group']}", True


def quiet_by_explain() -> tuple[str, bool]:
    """What is said of a healthy twin."""
    document, _, _ = explained()
    return document["verdict"], document["verdict"] not in _SERIOUS


def steps_kept(kind: str, act: Callable[[], object], *arguments: str) -> tuple[str, bool]:
    """Steps of a job while `act` runs, of those in a minute before."""
    with tempfile.TemporaryDirectory() as place:
        steps = Path(place, "steps")
        with job(kind, *arguments, steps=steps):
            first = steps.stat().st_size
            time.sleep(_STEPS_SECONDS)
            usual = (steps.stat().st_size - first) / _STEPS_SECONDS
            first, began = steps.stat().st_size, time.monotonic()
            said = act()
            rate = (steps.stat().st_size - first) / (time.monotonic() - began)
    return f"{said}; steps: {rate / usual:.0%}", rate > 0.9 * usual


class Node:
    """`heapwatch node`, until the context ends."""

    def __init__(self, stack: ExitStack) -> None:
        port = free_port()
        self._url = f"http://127.0.0.1:{port}/explain"
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        command = [sys.executable, "-m", "heapwatch", "node", "--port", str(port)]
        stack.enter_context(started(command, {"HEAPWATCH_TARGETS_DIR": folder}, patience=5.0, **_SILENT))
        self._began = time.monotonic()

    def found(self, program: str, line: str) -> tuple[str, bool]:
        """The leak with its name, or what was said last."""
        document: Document = {"verdict": "no answer", "findings": []}
        while (passed := time.monotonic() - self._began) < _NODE_PATIENCE:
            time.sleep(5.0)
            try:
                document = get_json(self._url)
            except Unreachable:
                continue
            for finding in document["findings"]:
                if finding["is_leak"] and finding["path"] and is_at(finding, program, line):
                    return f"`{finding['path']}` after {passed:.0f} s", True
        return document["verdict"], False


def _named(found: tuple[Document | None, float], line: str) -> tuple[str, bool]:
    """A finding and its seconds in words, and whether its line is the right one."""
    finding, seconds = found
    if finding is None:
        return "no", False
    name = f"`{finding['path']}`, {finding['type']}, after {seconds:.0f} s"
    return name, is_at(finding, "job", line)


def _quiet(twin: Watched) -> tuple[str, bool]:
    """The verdicts on a healthy twin, and whether none of them accuses it."""
    twin.explanation()
    return ", ".join(sorted(twin.verdicts - {""})), twin.verdicts.isdisjoint(_SERIOUS)


def ray_job() -> Iterator[tuple[str, str, str, bool]]:
    """An actor class of four leaks, in a cluster that was started before."""
    with cluster() as address, ExitStack() as stack:
        leaking = Watched(stack, "job", "ray", address)
        twin = Watched(stack, "job", "ray", address, JOB="steady")
        node = Node(stack)
        found = leaking.found(lambda one: "trajectories" in (one["path"] or ""), _RUN_PATIENCE)
        yield "Ray actors", "run of the driver", *_named(found, _FILLED)
        yield "Ray actors, healthy", "run of the driver", *_quiet(twin)
        yield "Ray actors", "explain", *by_explain("job", _FILLED)
        command = [sys.executable, "-m", "heapwatch", "top", "--json"]
        seen = subprocess.run(
            command, capture_output=True, text=True, timeout=300
        )  # it ends with 2 of a leak
        groups = json.loads(seen.stdout)["groups"]
        rollouts = [group for group in groups if group["group"].startswith("Rollout ") and group["growing"]]
        said = ", ".join(f"{group['growing']} of {group['processes']} {group['group']}" for group in rollouts)
        yield "Ray actors", "top", said or "no", len(rollouts) == 1
        yield "Ray actors", "node", *node.found("job", _FILLED)
        yield "two nodes", "ray", *_on_every_node(address)


def _on_every_node(address: str) -> tuple[str, bool]:
    """What `heapwatch ray` places, and whether each of its exporters sees the actors."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "ray.json")
        command = [sys.executable, "-m", "heapwatch", "ray", "--address", address, "--targets", str(file)]
        subprocess.run([*command, "--once"], check=True, timeout=300, **_SILENT)
        (group,) = json.loads(file.read_text())
        time.sleep(15.0)
        seen = sum(b'group="Rollout ' in _metrics(one) for one in group["targets"])
        subprocess.run([*command, "--stop"], check=True, timeout=300, **_SILENT)
        return f"{len(group['targets'])} exporters, {seen} see the actors", seen == len(group["targets"]) == 2


def _metrics(address: str) -> bytes:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        series: bytes = answer.read()
    return series


def references() -> Iterator[tuple[str, str, str, bool]]:
    """A driver that keeps references of results."""
    with ExitStack() as stack:
        leaking = Watched(stack, "job", "references")
        twin = Watched(stack, "job", "references", JOB="steady")
        found = leaking.found(
            lambda one: (one["path"] or "").endswith("history") and one["is_leak"], _RUN_PATIENCE
        )
        yield "kept references", "run", *_named(found, "history.append")
        yield "kept references, healthy", "run", *_quiet(twin)


def groups() -> Iterator[tuple[str, str, str, bool]]:
    """Ranks, workers of an inference server, and 151 processes, each without a name given."""
    for kind, line in (("torchrun", _FILLED), ("spawned", "SharedMemory(create=True"), ("many", _FILLED)):
        right: list[bool] = []

        def act(line: str = line, right: list[bool] = right) -> str:
            said, is_right = by_explain("job", line)
            right.append(is_right)
            return said

        said, unharmed = steps_kept(kind, act)
        yield kind, "explain", said, right[0] and unharmed
        with job(kind, steady=True):
            yield f"{kind}, healthy", "explain", *quiet_by_explain()


def machine() -> tuple[list[Table], list[Claim]]:
    """One row for each job and way to look at it."""
    rows = Table("Jobs of many processes", "job | seen by | what is said | right")
    for part in (ray_job, references, groups):
        for name, seen_by, said, is_right in part():
            rows.measured(name, seen_by, said, "yes" if is_right else "no")
    right = sum(row[-1] == "yes" for row in rows.rows)
    claim = "the process that leaks is found and named, and a healthy job is not accused"
    return [rows], [Claim(claim, f"{right} of {len(rows.rows)}", right == len(rows.rows))]
