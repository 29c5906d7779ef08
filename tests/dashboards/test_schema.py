"""The generated JSON holds nothing but modern shapes that are known to be right."""

import copy
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.dashboards.documents import DOCUMENTS, Json

SCHEMA = json.loads((Path(__file__).parent / "schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)

# Shapes that Grafana left behind, or that grafanalib would write.
WRONG = {
    "an old schema version": lambda page: page.update(schemaVersion=12),
    "a data source by name": lambda page: page["panels"][0].update(datasource="Prometheus"),
    "legacy rows": lambda page: page.update(rows=[]),
    "a graph panel": lambda page: page["panels"][0].update(type="graph"),
    "field options": lambda page: page["panels"][0]["options"].update(fieldOptions={}),
    "a target without refId": lambda page: page["panels"][0]["targets"][0].pop("refId"),
    "a base threshold that is a string": lambda page: page["panels"][0]["fieldConfig"]["defaults"][
        "thresholds"
    ]["steps"][0].update(value="null"),
}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_the_schema_accepts(document: Json) -> None:
    assert [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(document)] == []


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_the_schema_refuses(wrong) -> None:  # type: ignore[no-untyped-def]
    page = copy.deepcopy(DOCUMENTS["heapwatch-fleet"])
    wrong(page)
    assert not VALIDATOR.is_valid(page)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
