"""The commands of README and docs, as a reader would type them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:heapwatch|make|curl|python -m|promtool) [^`]*)`")
PROMPT = "$ "


@dataclass(frozen=True)
class Command:
    """One command and the page it is on; what follows a pipe or a redirection is left out."""

    page: str
    text: str

    @property
    def words(self) -> list[str]:
        """What a shell would pass to the program, without substitution."""
        lexer = shlex.shlex(self.text, posix=True, punctuation_chars="|>")
        lexer.whitespace_split = True
        return list(takewhile(lambda word: word not in ("|", ">"), lexer))


def blocks() -> Iterator[Command]:
    """The commands of each block: the lines with a prompt, or all lines of a block that shows no output."""
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        for language, block in FENCED.findall(page.read_text(encoding="utf-8")):
            if language:
                continue
            lines = block.replace("\\\n", " ").splitlines()
            prompted = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
            for line in prompted or (lines if _is_command(lines[0]) else ()):
                yield from (Command(name, part.strip()) for part in line.split(" && "))


def inline() -> Iterator[Command]:
    """The commands within sentences and tables, which may have placeholders."""
    for page in PAGES:
        for text in INLINE.findall(page.read_text(encoding="utf-8")):
            yield Command(page.relative_to(ROOT).as_posix(), " ".join(text.split()))


def _is_command(line: str) -> bool:
    return line.split(" ")[0] in ("pip", "git", "make", "heapwatch", "python", "curl")
