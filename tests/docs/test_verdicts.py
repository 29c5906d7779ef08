"""The table of verdicts in the docs is the vocabulary of the code."""

import re

from heapwatch.analysis.verdict import MEANINGS
from tests.support.repository import REPOSITORY


def test_the_docs_tell_each_word_as_the_code_does():
    text = (REPOSITORY / "docs" / "explaining.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z -]+)` \| (.+) \| (.+) \| (\d) \|$", text, re.MULTILINE)
    assert rows == [
        (word, meaning.claim, meaning.action, str(meaning.exit_code)) for word, meaning in MEANINGS.items()
    ]
