"""The objects that are written fit each other."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.generator import __main__ as command
from deploy.generator.configuration import load
from tests.dashboards.documents import DOCUMENTS
from tests.deploy.test_configuration import changed
from tests.support.repository import REPOSITORY

CONFIGURATION = load(REPOSITORY / "deploy" / "configuration.yml")
EXPRESSION = re.compile(r"\{\{-? (.+?) \}\}")
FILES = command.files(REPOSITORY / "deploy" / "configuration.yml")


def below(folder: str) -> dict[str, str]:
    return {
        name.removeprefix(f"{folder}/"): text for name, text in FILES.items() if name.startswith(f"{folder}/")
    }


BASE, CHART = below("kubernetes"), below("chart")


def objects() -> dict[str, Any]:
    texts = [text for name, text in BASE.items() if "/" not in name and name != "kustomization.yaml"]
    documents = [document for text in texts for document in yaml.load_all(text, yaml.CSafeLoader)]
    return {document["kind"]: document for document in documents}


OBJECTS = objects()


def every_value(value: Any) -> Iterator[Any]:
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from every_value(inner)


def test_another_configuration_is_written_elsewhere(tmp_path: Path) -> None:
    arguments = [f"--configuration={changed(tmp_path, namespace='ml')}", f"--output={tmp_path / 'out'}"]
    assert command.main(arguments) == 0
    written = (tmp_path / "out" / "kubernetes" / "rules.yaml").read_text()
    assert 'up{job="ml/heapwatch-trainers"}' in written
    assert "monitoring/heapwatch" not in written
    assert (tmp_path / "out" / "chart" / "dashboards" / "heapwatch-fleet.json").is_file()


def test_a_wrong_configuration_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([f"--configuration={changed(tmp_path, secret=None)}"]) == 2
    assert "missing or unknown: secret" in capsys.readouterr().err


def test_the_base_lists_every_file_but_the_sample() -> None:
    listed = yaml.safe_load(BASE["kustomization.yaml"])["resources"]
    assert set(listed) == BASE.keys() - {"kustomization.yaml", "sample-job.yaml"}


@pytest.mark.parametrize("uid", DOCUMENTS)
def test_a_configmap_holds_the_dashboard_for_the_sidecar(uid: str) -> None:
    manifest = yaml.load(BASE[f"dashboards/{uid}.yaml"], yaml.CSafeLoader)
    assert (manifest["apiVersion"], manifest["kind"]) == ("v1", "ConfigMap")
    assert manifest["metadata"]["labels"] == {"grafana_dashboard": "1"}
    assert json.loads(manifest["data"][f"{uid}.json"]) == DOCUMENTS[uid]
    # What Kubernetes accepts in one object.
    assert len(manifest["data"][f"{uid}.json"].encode()) < 1_000_000


def test_secrets_are_referred_to_and_never_held() -> None:
    assert "Secret" not in OBJECTS
    webhooks = [webhook for receiver in OBJECTS["AlertmanagerConfig"]["spec"]["receivers"]
                for webhook in receiver.get("webhookConfigs", [])]  # fmt: skip
    assert len(webhooks) == 2
    for webhook in webhooks:
        authorization = webhook["httpConfig"]["authorization"]
        assert authorization["credentials"] == {"name": CONFIGURATION.secret, "key": "webhook-token"}
        assert webhook["url"] == "http://heapwatch-receiver.monitoring.svc:9095/alerts"


def test_every_route_leads_to_a_receiver() -> None:
    spec = OBJECTS["AlertmanagerConfig"]["spec"]
    routes = [
        value for value in every_value(spec["route"]) if isinstance(value, dict) and "receiver" in value
    ]
    assert {route["receiver"] for route in routes} == {receiver["name"] for receiver in spec["receivers"]}


def test_the_monitor_finds_the_sample_and_the_policy_lets_the_receiver_reach_it() -> None:
    pod = OBJECTS["Job"]["spec"]["template"]
    (port,) = pod["spec"]["containers"][0]["ports"]
    monitor = OBJECTS["PodMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert monitor["podMetricsEndpoints"][0]["port"] == port["name"]
    egress = OBJECTS["NetworkPolicy"]["spec"]["egress"]
    (to_trainers,) = (rule for rule in egress if monitor["selector"] in every_value(rule))
    assert to_trainers["ports"] == [{"protocol": "TCP", "port": port["containerPort"]}]


def test_the_service_and_its_monitor_find_the_receiver() -> None:
    pod = OBJECTS["StatefulSet"]["spec"]["template"]
    service = OBJECTS["Service"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    selector = OBJECTS["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    assert selector.items() <= service["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    assert OBJECTS["ServiceMonitor"]["spec"]["endpoints"][0]["port"] == port["name"]


def test_a_scrape_is_bounded_as_in_the_native_stack() -> None:
    native = yaml.safe_load((REPOSITORY / "prometheus" / "prometheus.yml").read_text())["scrape_configs"][0]
    spec = OBJECTS["PodMonitor"]["spec"]
    assert (spec["sampleLimit"], spec["bodySizeLimit"]) == (native["sample_limit"], native["body_size_limit"])


def test_pods_run_without_rights() -> None:
    for kind in ("StatefulSet", "Job"):
        pod = OBJECTS[kind]["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]


def test_the_chart_asks_for_the_values_that_it_has() -> None:
    templates = "".join(text for name, text in CHART.items() if name.startswith("templates/"))
    asked = set(re.findall(r"\.Values\.(\w+)", " ".join(EXPRESSION.findall(templates))))
    assert asked == set(yaml.safe_load(CHART["values.yaml"]))
    # the rules' own placeholders are the only ones left, and each is replaced
    left = set(re.findall(r"@[a-z_]+@", CHART["files/rules.yaml"]))
    assert left == set(re.findall(r'replace "(@[a-z_]+@)"', templates))
    assert re.findall(r"@[a-z_]+@", re.sub(r'replace "@[a-z_]+@"', "", templates)) == []
