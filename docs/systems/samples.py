"""The samples on these pages: `python -m docs.systems.samples` prints them anew into the pages.

Beside each page lies what its commands read: the record of a run, `NAME.jsonl.gz`; one of a check against the
alert rules, `NAME-LEAK.json.gz`; and what a monitor reads of a trainer, `walker.monitor.json.gz`, which
`python -m docs.systems.samples record URL` writes.
"""

import gzip
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from docs.generated import write_or_check
from examples.check.alerts import said
from heapwatch.cli.reporter import Reporter
from heapwatch.http.client import get_json
from heapwatch.recording.file import read_recording
from heapwatch.report.document import as_text
from heapwatch.report.findings import analyse

FOLDER = Path(__file__).parent
# What a page shows beside the finding: sections of the report, or how their titles begin.
SHOWN = {
    "erl_trading": ("MEMORY TREND", "OBJECT COUNT CHANGES"),
    "fire_dqn": ("MEMORY SNAPSHOT",),
    "metta_ppo": ("NAMED OBJECTS",),
}
MONITORED = FOLDER / "walker.monitor.json.gz"
INTERVAL = 10.0
SAMPLES = 9


def report(name: str) -> str:
    """What the command prints of the run, without the sections that are not shown."""
    text = as_text(analyse(read_recording(FOLDER / f"{name}.jsonl.gz")), most_rows=12)
    _, *sections = re.split(r"(?m)^=+\n(.+)\n=+\n", text)
    bodies = dict(zip(sections[::2], sections[1::2], strict=True))
    shown = [body for title, body in bodies.items() if title.startswith(SHOWN[name])]
    finding = next(iter(bodies.values()))
    return "...\n".join(part.strip("\n") + "\n" for part in (finding, *shown))


def monitored(_name: str) -> str:
    """What the monitor prints of what it read, in UTC."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    reporter, lines = Reporter(), []
    for moment, status in json.loads(gzip.decompress(MONITORED.read_bytes())):
        lines += reporter.report(moment, status)
    return "\n".join([*lines, ""])


def alerts(recording: str) -> dict[str, Callable[[str], str]]:
    """The command that prints what the alerts say of a recording, and what it prints."""
    return {
        f"python -m examples.check.alerts docs/systems/{recording}": lambda _name: said(FOLDER / recording)
    }


REPORT = {"heapwatch report run.jsonl.gz --rows 12": report}
# Page -> its commands, and what each prints.
PRINTED: Mapping[str, Mapping[str, Callable[[str], str]]] = {
    "erl_trading": REPORT,
    "fire_dqn": REPORT | alerts("fire_dqn-graph.json.gz"),
    "metta_ppo": REPORT,
    "walker": {"heapwatch monitor --interval 10": monitored} | alerts("walker-unknown.json.gz"),
}
COMMANDS = [(name, command) for name, printed in PRINTED.items() for command in printed]


def block(name: str, command: str) -> str:
    """A sample, as it stands in the page."""
    return f"```\n$ {command}\n{PRINTED[name][command](name)}```\n"


def record(url: str) -> None:
    """Read a trainer as the monitor does."""
    read = []
    for _ in range(SAMPLES):
        read.append((time.time(), get_json(f"{url}/performance_status", 2**22)))
        time.sleep(INTERVAL)
    MONITORED.write_bytes(gzip.compress(json.dumps(read).encode(), mtime=0))


def written(name: str) -> str:
    """The page with its samples as the commands print them."""
    text = page(name).read_text(encoding="utf-8")
    for command in PRINTED[name]:
        before, began, after = text.partition(f"```\n$ {command}\n")
        _, end, rest = after.partition("```\n")
        if not (began and end):
            raise ValueError(f"{page(name)} has no block that begins with {command!r}")
        text = before + block(name, command) + rest
    return text


def page(name: str) -> Path:
    """The page of a system."""
    return FOLDER / f"{name}.md"


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        if len(sys.argv) != 3:
            sys.exit("usage: python -m docs.systems.samples record URL")
        record(sys.argv.pop(2))
        del sys.argv[1]
    sys.exit(write_or_check("docs.systems.samples", {page(name): written(name) for name in PRINTED}))
