"""The committed files are what the code writes, in modern shapes, and each page is laid out soundly."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from heapwatch_dashboards import __main__ as command
from heapwatch_dashboards import navigation
from tests.dashboards.documents import DOCUMENTS, Json, panels, targets
from tests.dashboards.promql import selectors

# The part of Grafana's model that the pages use, without the shapes that Grafana left behind.
SCHEMA = json.loads((Path(__file__).parent / "schema.json").read_text())
# What is not about one trainer: the machine, the stack, and the receiver, which serve all of them.
OF_ALL_TRAINERS = re.compile(r"job:machine_memory:.*|job:stack:.*|heapwatch_receiver_.*")

every_document = pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)


def test_the_committed_files_are_up_to_date() -> None:
    assert command.main(["--check"]) == 0


def test_what_is_stale_missing_or_left_over_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = f"--output={tmp_path}"
    command.main([folder])
    (tmp_path / "heapwatch-gpu.json").write_text("{}")
    (tmp_path / "heapwatch-world.json").unlink()
    (tmp_path / "old.json").write_text("{}")
    assert command.main([folder, "--check"]) == 1
    named = [line.split(" is not ")[0] for line in capsys.readouterr().err.splitlines()]
    wrong = ["heapwatch-gpu.json", "heapwatch-world.json", "old.json"]
    assert named == [str(tmp_path / file) for file in wrong]


@every_document
def test_the_schema_accepts(document: Json) -> None:
    errors = Draft202012Validator(SCHEMA).iter_errors(document)
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


def test_a_chosen_trainer_narrows_every_query() -> None:
    wide = {
        f"{target}: {selector.metric}{selector.matchers}"
        for target in targets()
        for selector in selectors(target.target["expr"])
        if 'job=~"$job", instance=~"$instance"' not in selector.matchers
        and not OF_ALL_TRAINERS.fullmatch(selector.metric)
    }
    assert wide == set()


@every_document
def test_all_trainers_can_be_chosen_only_where_nothing_is_added_up(document: Json) -> None:
    """A sum of two trainers has no limit and no verdict; the stack's pages choose among targets."""
    (chosen,) = (one for one in document["templating"]["list"] if one["name"] == "instance")
    of_several = {navigation.FLEET, "heapwatch-alerts", navigation.STACK}
    assert chosen["includeAll"] == chosen["multi"] == (document["uid"] in of_several)
    if chosen["multi"]:
        limits = [target for target in targets() if target.dashboard == document["uid"]]
        assert [one for one in limits if "job:trainer_limit" in one.target["expr"]] == []


@every_document
def test_panels_lie_side_by_side_and_never_overlap(document: Json) -> None:
    shown = [panel["gridPos"] for panel in document["panels"]]
    cells = [
        (x, y)
        for place in shown
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    assert all(above["y"] <= below["y"] for above, below in pairwise(shown))


@every_document
def test_panel_ids_are_unique_and_follow_from_the_title(document: Json) -> None:
    shown = [*document["panels"], *panels(document)]
    titles = {(panel["type"], panel["title"]) for panel in shown}
    assert len({panel["id"] for panel in shown}) == len(titles)


def test_links_lead_to_every_page_and_no_choice_of_trainer_narrows_the_fleet() -> None:
    assert list(DOCUMENTS) == list(navigation.TITLES)
    for uid, document in DOCUMENTS.items():
        links = {link["url"].removeprefix("/d/"): link for link in document["links"]}
        assert links.keys() == set(DOCUMENTS) - {uid}
        assert all(link["keepTime"] for link in links.values())
        with_trainer = {other for other, link in links.items() if link["includeVars"]}
        of_trainers = set(DOCUMENTS) - {navigation.STACK, navigation.FLEET, navigation.MACHINE}
        assert with_trainer == (of_trainers - {uid} if uid in of_trainers else set())
