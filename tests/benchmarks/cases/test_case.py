"""Every case is complete: cited, pinned, marked, and mended by a change that fits."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from benchmarks.cases.case import BrokenCase, load, load_all
from tests.support.made_cases import case as made

ROOT = Path(__file__).parents[3]
LOCK = "".join((ROOT / "requirements" / name).read_text() for name in ("dev.txt", "torch.txt"))
CASES = load_all()
PROVIDERS = packages_distributions()
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def test_there_are_thirty_cases_from_thirty_threads():
    assert len({case.thread for case in CASES}) == len(CASES) == 30


@each_case
def test_a_case_is_cited_small_and_mended_and_knows_nothing_of_the_watcher(case):
    assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", case.thread)
    assert case.leak.endswith(".")
    assert case.paths or case.types or case.kinds
    for pattern in case.paths + case.types:
        re.compile(pattern)
    assert 15 <= len(case.script.splitlines()) <= 80
    assert "heapwatch" not in case.script
    assert case.healthy_script != case.script
    compile(case.healthy_script, case.name, "exec")
    starts = {node.lineno for node in ast.walk(ast.parse(case.script)) if hasattr(node, "lineno")}
    assert case.lines
    assert case.lines <= starts


@each_case
def test_what_it_uses_is_pinned_or_standard(case):
    """What is not installed here is not checked: that makes the check weaker, never wrong."""
    assert case.library in sys.stdlib_module_names or f"\n{case.library}==" in LOCK
    for node in ast.walk(ast.parse(case.script)):
        imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        imported += [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in {one.partition(".")[0] for one in imported} & PROVIDERS.keys() - sys.stdlib_module_names:
            locked = [provider.lower().replace("_", "-") for provider in PROVIDERS[name]]
            assert any(f"\n{provider}==" in LOCK for provider in locked), name


def test_written_scripts_keep_their_lines_and_lose_their_marks(tmp_path):
    case = CASES[0]
    written = case.write(tmp_path, healthy=False).read_text()
    assert "LEAK" not in written
    assert len(written.splitlines()) == len(case.script.splitlines())
    marked = case.script.splitlines()[min(case.lines) - 1]
    assert marked.startswith(written.splitlines()[min(case.lines) - 1])


def test_a_fix_that_fits_nowhere_or_twice_is_refused():
    for old in ("missing", "a"):
        with pytest.raises(BrokenCase, match="stands"):
            _ = made(script="a = a\n", fixes={old: "b"}).healthy_script


def test_a_description_with_an_unknown_key_is_refused(tmp_path):
    (tmp_path / "train.py").write_text("pass\n")
    (tmp_path / "case.yml").write_text("fix: []\nlibrary: json\nsurprise: 1\n")
    with pytest.raises(BrokenCase, match="surprise"):
        load(tmp_path)
