"""The committed files are what the code writes, in modern shapes, and each page is laid out soundly."""

import copy
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from heapwatch_dashboards import __main__ as command
from heapwatch_dashboards import boards, navigation
from heapwatch_dashboards.queries import alerts, explanation, trainers
from tests.dashboards.documents import DOCUMENTS, Json, expressions, panels

SCHEMA = json.loads((Path(__file__).parent / "schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
PAGE, NUMBER, CHART, TIMELINE = -1, 0, 8, 9  # the whole of Fleet, or the place of a panel in it

# Shapes that Grafana left behind, that Grafana draws otherwise than it was
# meant, or that the built-in viewer does not draw, and where they are.
WRONG: dict[str, tuple[int, Callable[[Json], object]]] = {
    "an old schema version": (PAGE, lambda page: page.update(schemaVersion=12)),
    "a dashboard that can be edited": (PAGE, lambda page: page.update(editable=True)),
    "a dashboard that may be edited": (PAGE, lambda page: page.pop("editable")),
    "a variable of one value": (PAGE, lambda page: page["templating"]["list"][1].update(multi=False)),
    "a variable without all": (PAGE, lambda page: page["templating"]["list"][1].update(includeAll=False)),
    "legacy rows": (PAGE, lambda page: page.update(rows=[])),
    "a data source by name": (NUMBER, lambda panel: panel.update(datasource="Prometheus")),
    "a graph panel": (NUMBER, lambda panel: panel.update(type="graph")),
    "a gauge, which without data is one huge bar": (NUMBER, lambda panel: panel.update(type="bargauge")),
    "a panel without targets": (NUMBER, lambda panel: panel.update(targets=[])),
    "a target without refId": (NUMBER, lambda panel: panel["targets"][0].pop("refId")),
    "a target of now and of the range": (NUMBER, lambda panel: panel["targets"][0].update(range=True)),
    "a name that Grafana makes": (CHART, lambda panel: panel["targets"][0].update(legendFormat="__auto")),
    "a rule group by its path": (
        CHART,
        lambda panel: panel["targets"][0].update(legendFormat="{{rule_group}}"),
    ),
    "field options": (NUMBER, lambda panel: panel["options"].update(fieldOptions={})),
    "a number over a sparkline": (NUMBER, lambda panel: panel["options"].update(graphMode="area")),
    "a number without its name": (NUMBER, lambda panel: panel["options"].update(textMode="value_and_name")),
    "a table below a chart": (CHART, lambda panel: panel["options"]["legend"].update(displayMode="table")),
    "a legend beside a chart": (CHART, lambda panel: panel["options"]["legend"].update(placement="right")),
    "a chart without its legend": (CHART, lambda panel: panel["options"]["legend"].update(showLegend=False)),
    "a mean in a legend": (CHART, lambda panel: panel["options"]["legend"].update(calcs=["mean"])),
    "a line across missing data": (CHART, lambda panel: defaults(panel)["custom"].update(spanNulls=True)),
    "an axis with a fixed end": (CHART, lambda panel: defaults(panel).update(min=0)),
    "a second unit in a chart": (
        CHART,
        lambda panel: panel["fieldConfig"]["overrides"].append(
            {"matcher": {"id": "byName", "options": "x"}, "properties": [{"id": "unit", "value": "s"}]}
        ),
    ),
    "a link on a number": (
        NUMBER,
        lambda panel: defaults(panel).update(links=[{"title": "Fleet", "url": "/d/heapwatch-fleet"}]),
    ),
    "a unit that is none": (NUMBER, lambda panel: defaults(panel).update(unit="furlong")),
    "a number without a unit": (NUMBER, lambda panel: defaults(panel).pop("unit")),
    "a threshold at a word": (
        NUMBER,
        lambda panel: defaults(panel)["thresholds"]["steps"][0].update(value="null"),
    ),
    "a colour by name": (
        NUMBER,
        lambda panel: defaults(panel)["thresholds"]["steps"][0].update(color="dark-red"),
    ),
    "two decimals of a small number": (CHART, lambda panel: defaults(panel).update(decimals=2)),
    "a timeline by thresholds": (
        TIMELINE,
        lambda panel: defaults(panel).update(color={"mode": "thresholds"}),
    ),
    "states without names": (TIMELINE, lambda panel: defaults(panel).update(mappings=[])),
}


def defaults(panel: Json) -> Json:
    fields: Json = panel["fieldConfig"]["defaults"]
    return fields


every_document = pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)


def test_the_committed_files_are_up_to_date() -> None:
    assert command.main(["--check"]) == 0


def test_what_is_stale_missing_or_left_over_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = f"--output={tmp_path}"
    command.main([folder])
    assert command.main([folder, "--check"]) == 0
    (tmp_path / "heapwatch-gpu.json").write_text("{}")
    (tmp_path / "heapwatch-world.json").unlink()
    (tmp_path / "old.json").write_text("{}")
    assert command.main([folder, "--check"]) == 1
    named = [line.split(" is not ")[0] for line in capsys.readouterr().err.splitlines()]
    wrong = ["heapwatch-gpu.json", "heapwatch-world.json", "old.json"]
    assert named == [str(tmp_path / file) for file in wrong]


@every_document
def test_the_schema_accepts(document: Json) -> None:
    assert [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(document)] == []


@pytest.mark.parametrize(("place", "make_wrong"), WRONG.values(), ids=WRONG)
def test_the_schema_refuses(place: int, make_wrong: Callable[[Json], object]) -> None:
    page = copy.deepcopy(DOCUMENTS["heapwatch-fleet"])
    make_wrong(page if place == PAGE else page["panels"][place])
    assert not VALIDATOR.is_valid(page)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_there_is_a_page_for_every_link() -> None:
    assert list(DOCUMENTS) == list(navigation.TITLES)


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
def test_every_line_of_panels_fills_the_width(document: Json) -> None:
    tops: dict[tuple[str, int], int] = {}
    for row in [{"title": "", "panels": document["panels"]}, *document["panels"]]:
        for panel in row.get("panels", []):
            line = (row["title"], panel["gridPos"]["y"])
            tops[line] = tops.get(line, 0) + panel["gridPos"]["w"]
    assert set(tops.values()) == {24}


@every_document
def test_panel_ids_are_unique_and_follow_from_the_title(document: Json) -> None:
    ids = [panel["id"] for panel in [*document["panels"], *panels(document)]]
    titles = [(panel["type"], panel["title"]) for panel in [*document["panels"], *panels(document)]]
    assert len(set(ids)) == len(set(titles))


@every_document
def test_a_panel_without_data_says_why(document: Json) -> None:
    shown = [panel for panel in panels(document) if panel["type"] != "text"]
    said = {panel["title"]: panel["fieldConfig"]["defaults"]["noValue"] for panel in shown}
    assert "No data" not in said.values()
    explained = [panel for panel in shown if f"\n\n“{said[panel['title']]}”: " in panel["description"]]
    assert [panel["title"] for panel in shown if panel not in explained] == []


def test_the_axes_of_all_charts_are_as_wide_so_that_their_times_agree() -> None:
    charts = [
        panel
        for document in DOCUMENTS.values()
        for panel in panels(document)
        if panel["type"] == "timeseries"
    ]
    assert len({panel["fieldConfig"]["defaults"]["custom"]["axisWidth"] for panel in charts}) == 1


@every_document
def test_a_page_can_be_taken_in(document: Json) -> None:
    unfolded = [panel for panel in document["panels"] if panel["type"] != "row"]
    assert 3 <= len(unfolded) <= 22


NO_QUERIES = ("PROCESS", "BELOW_WARNING", "GROWING", "LEAK", "NAME", "OVER")
OF_BOARDS = [
    getattr(boards, name) for name in ("alerts", "buffers", "fleet", "gpu", "phases", "stack", "world")
]


@pytest.mark.parametrize("module", [alerts, explanation, trainers, *OF_BOARDS])
def test_no_query_is_left_unused(module: object) -> None:
    shown = "\n".join(expression for _, expression in expressions())
    named = {
        name: value for name, value in vars(module).items() if name.isupper() and not name.startswith("_")
    }
    own = {name: value for name, value in named.items() if isinstance(value, str) and name not in NO_QUERIES}
    assert [name for name, value in own.items() if value not in shown] == []


@every_document
def test_links_lead_to_every_other_page_and_keep_the_time(document: Json) -> None:
    uids = {link["url"].removeprefix("/d/") for link in document["links"]}
    assert uids == set(DOCUMENTS) - {document["uid"]}
    assert all(link["keepTime"] for link in document["links"])


def test_the_choice_of_trainer_travels_between_the_trainers_pages_and_never_narrows_the_fleet() -> None:
    kept = {
        (uid, link["url"].removeprefix("/d/"))
        for uid, document in DOCUMENTS.items()
        for link in document["links"]
        if link["includeVars"]
    }
    trainers = set(DOCUMENTS) - {navigation.STACK}
    assert kept == {
        (here, there) for here in trainers for there in trainers - {navigation.FLEET} if here != there
    }


def test_every_board_is_rendered() -> None:
    files = {path.stem for path in Path(boards.__file__).parent.glob("*.py")} - {"__init__", "shared"}
    assert len(boards.ALL) == len(files)
