"""The scripts: watched as a reader of the README would, and each of them in the catalog."""

from __future__ import annotations

import ast

import pytest

from benchmarks.third_party.catalog import SCRIPTS, TRAINERS, Trainer

BY_NAME = pytest.mark.parametrize("trainer", TRAINERS, ids=lambda one: one.name)


def imports(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_every_script_is_in_the_catalog_and_the_other_way_round() -> None:
    names = [*(one.name for one in TRAINERS), "options"]
    assert sorted(path.stem for path in SCRIPTS.glob("*.py")) == sorted(names)
    assert len(TRAINERS) == 10


@BY_NAME
def test_it_is_watched_by_the_snippet_or_by_one_adapter_and_by_nothing_else(trainer: Trainer) -> None:
    tree = ast.parse(trainer.script.read_text())
    ours = {name for name in imports(tree) if name.startswith("heapwatch")}
    text = trainer.script.read_text()
    if trainer.watched == "snippet":
        assert ours == {"heapwatch"}
        calls = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and of_watch(node)}
        assert "step" in calls
        assert calls <= {"step", "progress"}, "it declares nothing"
        assert text.count("heapwatch.start(") == 1
    else:
        assert ours == {f"heapwatch.integrations.{trainer.watched}"}


def of_watch(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "watch"


@BY_NAME
def test_its_leak_is_in_the_script_and_named_by_it(trainer: Trainer) -> None:
    text = trainer.script.read_text()
    assert "options.parse()" in text or ('"--leak"' in text and '"--minutes"' in text)
    assert "args.leak" in text
    assert trainer.leak.named_in(text)
    assert not trainer.leak.named_in("memory (trainer) of 127.0.0.1:7778 leaks")
