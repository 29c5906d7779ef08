"""The samples of `heapwatch report` on these pages: `python -m docs.systems.samples [--check]`.

Beside each page lies the record of its run, `NAME.jsonl.gz`.
"""

import re
import sys
from pathlib import Path

from heapwatch.recording.reader import read_recording
from heapwatch.report.findings import analyse
from heapwatch.report.text import as_text

FOLDER = Path(__file__).parent
COMMAND = "$ heapwatch report run.jsonl.gz --rows 12\n"
# What a page shows beside the finding: sections of the report, or how their titles begin.
SHOWN = {
    "erl_trading": ("MEMORY TREND", "OBJECT COUNT CHANGES"),
    "fire_dqn": ("MEMORY SNAPSHOT",),
    "metta_ppo": ("NAMED OBJECTS",),
}


def sample(name: str) -> str:
    """What the command prints of the run, without the sections that are not shown."""
    text = as_text(analyse(read_recording(FOLDER / f"{name}.jsonl.gz")), most_rows=12)
    _, *sections = re.split(r"(?m)^=+\n(.+)\n=+\n", text)
    bodies = dict(zip(sections[::2], sections[1::2], strict=True))
    shown = [body for title, body in bodies.items() if title.startswith(SHOWN[name])]
    finding = next(iter(bodies.values()))
    return "...\n".join(part.strip("\n") + "\n" for part in (finding, *shown))


def written(name: str) -> str:
    """The page with its sample as the command prints it."""
    text = page(name).read_text(encoding="utf-8")
    before, command, after = text.partition(COMMAND)
    _, end, rest = after.partition("```\n")
    if not (command and end):
        raise ValueError(f"{page(name)} has no block that begins with {COMMAND.strip()!r}")
    return before + command + sample(name) + end + rest


def page(name: str) -> Path:
    """The page."""
    return FOLDER / f"{name}.md"


if __name__ == "__main__":
    stale = [name for name in SHOWN if written(name) != page(name).read_text(encoding="utf-8")]
    if sys.argv[1:] == ["--check"]:
        sys.exit(f"stale samples: {', '.join(stale)}: `make generate`" if stale else 0)
    for name in stale:
        page(name).write_text(written(name), encoding="utf-8")
