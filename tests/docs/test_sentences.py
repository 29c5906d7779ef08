"""Sentences of the documentation have at most 25 words."""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests.support.commands import ROOT

MOST_WORDS = 25
# Written from measurements or from metadata.
GENERATED = ("benchmarks", "leak-cases", "licenses", "metrics", "third-party-trainers")
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.stem not in GENERATED),
]
CODE_BLOCK = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
NO_PROSE = re.compile(r"\s*(\||#|<!--|!\[|:::)| {8}")
ITEM = re.compile(r"^\s*([-*]|\d+\.) +")
LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
SENTENCE_END = re.compile(r"(?<=[.!?])[)*_\"]*\s+(?=[^a-z])")


def blocks(text: str) -> Iterator[str]:
    """The paragraphs and list items, each on one line."""
    lines = CODE_BLOCK.sub("", text).splitlines()
    for empty, group in groupby(lines, lambda line: not line.strip() or bool(NO_PROSE.match(line))):
        if empty:
            continue
        block = ""
        for line in group:
            if ITEM.match(line) and block:
                yield block
                block = ""
            block = f"{block} {ITEM.sub('', line).strip()}".strip()
        yield block


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page; a code span and the address of a link count as nothing or one word."""
    for block in blocks(text):
        plain = LINK.sub(r"\1", re.sub(r"`[^`]+`", "CODE", block))
        yield from SENTENCE_END.split(plain)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_sentence_is_long(page: Path) -> None:
    long = [one for one in sentences(page.read_text(encoding="utf-8")) if len(one.split()) > MOST_WORDS]
    assert long == []


def test_what_a_sentence_is() -> None:
    text = "# A title of words\n\nOne `two words` three. Four:\n\n- five\n  six\n- seven\n\n| a | table |\n"
    assert list(sentences(text)) == ["One CODE three.", "Four:", "five six", "seven"]
