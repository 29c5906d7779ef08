"""Grafana's provisioning: valid, the same for every way of running it, and in step with the dashboards."""

from typing import Any

import yaml

from heapwatch_dashboards import __main__ as command
from tests.dashboards.documents import DOCUMENTS

FOLDER = command.ROOT / "dashboards" / "grafana" / "provisioning"


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
