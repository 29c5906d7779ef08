"""Grafana's provisioning: valid, the same for every way of running it, and in step with the dashboards."""

import re
from typing import Any

import pytest
import yaml

from heapwatch_dashboards import __main__ as command
from tests.dashboards.documents import DOCUMENTS

FOLDER = command.ROOT / "dashboards" / "grafana" / "provisioning"
VARIABLES = {"HEAPWATCH_PROMETHEUS_URL", "GF_PATHS_DASHBOARDS"}


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    assert document["apiVersion"] == 1
    return document


def test_the_data_source_is_the_one_that_the_dashboards_start_with() -> None:
    (source,) = read("datasources/prometheus.yml")["datasources"]
    started = {
        (entry["current"]["text"], entry["current"]["value"])
        for document in DOCUMENTS.values()
        for entry in document["templating"]["list"]
        if entry["type"] == "datasource"
    }
    assert started == {(source["name"], source["uid"])}
    assert (source["type"], source["isDefault"]) == ("prometheus", True)


def test_the_scrape_interval_is_passed_to_grafana() -> None:
    (source,) = read("datasources/prometheus.yml")["datasources"]
    scraping = yaml.safe_load((command.ROOT / "prometheus" / "prometheus.yml").read_text())
    assert source["jsonData"]["timeInterval"] == scraping["global"]["scrape_interval"]


def test_dashboards_are_read_from_their_folder_and_stay_as_generated() -> None:
    (provider,) = read("dashboards/heapwatch.yml")["providers"]
    assert provider["options"] == {"path": "${GF_PATHS_DASHBOARDS}"}
    assert (provider["type"], provider["allowUiUpdates"], provider["disableDeletion"]) == (
        "file",
        False,
        True,
    )


@pytest.mark.parametrize("file", sorted(FOLDER.rglob("*.yml")), ids=lambda file: file.name)
def test_every_variable_is_documented(file: Any) -> None:
    used = set(re.findall(r"\$\{(\w+)\}", file.read_text()))
    assert used <= VARIABLES
    manual = (command.ROOT / "dashboards" / "grafana" / "README.md").read_text()
    assert all(f"`{name}`" in manual for name in used)


def test_compose_gives_grafana_what_provisioning_asks_for() -> None:
    compose = yaml.safe_load((command.ROOT / "docker-compose.yml").read_text())
    assert compose["services"]["dashboards"]["environment"].keys() >= VARIABLES
