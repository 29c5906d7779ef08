"""Pages say what the code says, and look the same on GitHub and on the site.

The Markdown of the site wants an empty line before a list, and four spaces below its items.
"""

import re
from itertools import pairwise

import pytest

from docs.systems import samples
from heapwatch.judge.verdict import MEANINGS
from heapwatch_receiver.settings import Settings
from tests.support.commands import ROOT

FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
BEGINS = re.compile(r"[-*] |\d+\. |\|")
PARAGRAPH = re.compile(r"(?![-*] |\d+\. |\||\s|<!--|#)\S")
TOO_LITTLE = re.compile(r"^ {1,3}([-*] |\d+\. |\|)")
PAGES = sorted((ROOT / "docs").rglob("*.md"))


pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@pages
def test_what_is_below_a_list_item_is_indented_by_four(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if TOO_LITTLE.match(line)] == []


@pages
def test_an_empty_line_stands_before_a_list_or_a_table(page):
    lines = FENCED.sub("", page.read_text(encoding="utf-8")).splitlines()
    joined = [line for before, line in pairwise(lines) if BEGINS.match(line) and PARAGRAPH.match(before)]
    assert joined == []


@pages
def test_it_is_installed_from_a_clone_while_it_is_not_on_pypi(page):
    installs = re.findall(r"(?:pip|pipx|uvx) .*?heapwatch.*", page.read_text(encoding="utf-8"))
    # With an extra, pip adds to what is installed.
    assert [line for line in installs if re.search(r"(install|--from) [\"']?heapwatch(?!\[)", line)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "command"), [one for one in samples.COMMANDS if "examples.check.alerts" not in one[1]]
)
def test_samples_of_the_systems_are_what_the_commands_print(name, command):
    """What the alerts say takes promtool a minute, and is compared in tests/documents."""
    assert samples.block(name, command) in samples.page(name).read_text(encoding="utf-8")


def test_the_docs_have_each_word_of_a_verdict_as_the_code_does():
    text = (ROOT / "docs" / "explaining.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z -]+)` \| (.+) \| (.+) \| (\d) \|$", text, re.MULTILINE)
    assert rows == [
        (word, meaning.claim, meaning.action, str(meaning.exit_code)) for word, meaning in MEANINGS.items()
    ]


def test_each_setting_of_the_receiver_is_in_its_page():
    text = (ROOT / "docs" / "receiver.md").read_text(encoding="utf-8")
    assert [name for name in Settings.model_fields if f"`{name}`" not in text] == []
