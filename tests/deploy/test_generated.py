"""The objects that are written fit each other."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from deploy.generator import chart, monitoring, text
from deploy.generator.configuration import load
from heapwatch.cli import main
from heapwatch.machine.node import DEFAULT_PORT
from tests.dashboards.documents import DOCUMENTS
from tests.support.repository import REPOSITORY

CONFIGURATION = load("monitoring")
EXPRESSION = re.compile(r"\{\{-? (.+?) \}\}")
CHART = chart.files()
OBJECTS: dict[str, Any] = {
    manifest["kind"]: manifest
    for manifest in (
        *monitoring.discovery(CONFIGURATION),
        monitoring.alertmanager_config(CONFIGURATION),
        *text.objects("receiver.yaml", CONFIGURATION),
        *text.objects("sample-job.yaml", CONFIGURATION),
    )
}
MACHINE: dict[str, Any] = {
    manifest["kind"]: manifest for manifest in text.objects("machine.yaml", CONFIGURATION)
}
# Each would open the chart to others than Alertmanager and Prometheus, or give it rights.
OPENINGS = (
    *("NodePort", "LoadBalancer", "externalIPs", "hostPort", "hostNetwork", "hostPath", "privileged: true"),
    *("ClusterRole", "RoleBinding", "kind: Ingress", "kind: Secret"),
)


def every_value(value: Any) -> Iterator[Any]:
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from every_value(inner)


def test_the_chart_opens_nothing() -> None:
    templates = [text for name, text in CHART.items() if name.endswith(".yaml")]
    assert templates
    assert not {word for text in templates for word in OPENINGS if word in text}


def test_jobs_are_named_as_the_operator_names_them() -> None:
    configuration = load("ml")
    assert configuration.trainer_job == "ml/heapwatch-trainers"
    assert 'up{job="ml/heapwatch-trainers"}' in str(monitoring.rule(configuration))


def test_every_dashboard_fits_into_an_object_of_kubernetes() -> None:
    boards = {name: text for name, text in CHART.items() if name.startswith("dashboards/")}
    assert set(boards) == {f"dashboards/{uid}.json" for uid in DOCUMENTS}
    assert all(len(text.encode()) < 1_000_000 for text in boards.values())


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


def test_a_machine_is_read_without_a_way_to_change_it() -> None:
    pod = MACHINE["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["hostPID"] is True
    assert pod["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostIPC"} & pod.keys()
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE", "DAC_READ_SEARCH"]},
    }
    assert pod["volumes"] == [{"name": "tmp", "emptyDir": {}}]


def test_the_exporter_of_a_machine_is_reached_by_prometheus_alone() -> None:
    pod = MACHINE["DaemonSet"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    *python, command = container["command"][:3]
    assert (python, command) == (["python", "-m"], "heapwatch")
    arguments = main._parser().parse_args(container["command"][3:])
    assert (arguments.all_users, arguments.name, arguments.port) == (True, "$(NODE)", DEFAULT_PORT)
    assert "NODE" in {variable["name"] for variable in container["env"]}

    (port,) = container["ports"]
    monitor = OBJECTS["PodMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert (port["name"], port["containerPort"]) == (monitor["podMetricsEndpoints"][0]["port"], DEFAULT_PORT)

    policy = MACHINE["NetworkPolicy"]["spec"]
    selectors = (policy["podSelector"], MACHINE["DaemonSet"]["spec"]["selector"])
    assert all(one["matchLabels"].items() <= pod["metadata"]["labels"].items() for one in selectors)
    (ingress,) = policy["ingress"]
    (source,) = ingress["from"]
    assert source["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "prometheus"}
    assert ingress["ports"] == [{"protocol": "TCP", "port": port["containerPort"]}]
    assert "Egress" in policy["policyTypes"]
    assert "egress" not in policy


def test_the_sample_and_the_exporter_of_a_machine_are_off_by_default() -> None:
    values = yaml.safe_load(CHART["values.yaml"])
    for value, name in (("sampleEnabled", "sample-job"), ("machineEnabled", "machine")):
        assert values[value] is False
        assert CHART[f"templates/{name}.yaml"].startswith(f"{{{{- if .Values.{value} }}}}\n")


def test_the_chart_asks_for_the_values_that_it_has() -> None:
    templates = "".join(text for name, text in CHART.items() if name.startswith("templates/"))
    asked = set(re.findall(r"\.Values\.(\w+)", " ".join(EXPRESSION.findall(templates))))
    assert asked == set(yaml.safe_load(CHART["values.yaml"]))
    # the rules' own placeholders are the only ones left, and each is replaced
    left = set(re.findall(r"@[a-z_]+@", CHART["files/rules.yaml"]))
    assert left == set(re.findall(r'replace "(@[a-z_]+@)"', templates))
    assert re.findall(r"@[a-z_]+@", re.sub(r'replace "@[a-z_]+@"', "", templates)) == []
