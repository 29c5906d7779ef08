"""docker-compose.yml, and what its configuration container does; `make test-containers` runs it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from heapwatch_receiver.settings import SHARED_NAMES
from heapwatch_receiver.settings import Settings as ReceiverSettings
from heapwatch_stack import compose, configuration, containers
from heapwatch_stack.alertmanager import channels
from heapwatch_stack.containers import ADDRESSES
from heapwatch_stack.errors import StackError
from heapwatch_stack.releases import ALERTMANAGER, GRAFANA, PROMETHEUS
from heapwatch_stack.settings import Settings
from tests.support.repository import REPOSITORY, SOURCES

GUARDS = {"prometheus": "prometheus-guard", "alertmanager": "alertmanager-guard"}


def configured(file: str) -> dict[str, Any]:
    """The file as Compose reads it where no variable is set."""
    text = (REPOSITORY / file).read_text()
    text = re.sub(r"(?<!\$)\$\{\w+(?::?-([^{}]*))?\}", lambda match: match[1] or "", text)
    return dict(yaml.safe_load(text.replace("$$", "$")))


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    return configured("docker-compose.yml")


def test_the_services_are_those_of_native_mode(composed: dict[str, Any]) -> None:
    native = Settings.from_environment({"HEAPWATCH_CHECKOUT": str(REPOSITORY)}).endpoints()
    assert set(composed["services"]) == {*native, *GUARDS.values(), "configuration"}
    for name, endpoint in native.items():
        (published,) = composed["services"][GUARDS.get(name, name)]["ports"]
        assert published == f"127.0.0.1:{endpoint.port}:{endpoint.port}"


def test_browsers_reach_prometheus_and_alertmanager_through_a_guard_alone(composed: dict[str, Any]) -> None:
    for name, guard in GUARDS.items():
        assert "ports" not in composed["services"][name]
        command = composed["services"][guard]["command"]
        assert command[:3] == ["python", "-m", "heapwatch_stack.guard"]
        assert command[3:] == ["0.0.0.0", ADDRESSES[name].rpartition(":")[2], "--to", ADDRESSES[name]]


def test_what_runs_on_is_checked_restarted_and_confined(composed: dict[str, Any]) -> None:
    for name, service in composed["services"].items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert "image" in service, name
        if name != "configuration":
            assert service["restart"] == "unless-stopped"
            assert service["healthcheck"]["test"]
            assert service["depends_on"]["configuration"]["condition"] == "service_completed_successfully"
            assert not str(service.get("user", "472")).startswith("0")


def test_foreign_images_are_pinned_and_can_be_overridden(composed: dict[str, Any]) -> None:
    text = (REPOSITORY / "docker-compose.yml").read_text()
    for name in ("prometheus", "alertmanager", "dashboards"):
        assert re.search(r":v?\d+\.\d+\.\d+$", composed["services"][name]["image"])
    for release in (PROMETHEUS, ALERTMANAGER, GRAFANA):  # native mode runs the same
        assert re.search(
            rf"image: \S+:\$\{{{release.name.upper()}_VERSION:-v?{re.escape(release.version)}\}}", text
        ), release.name


def test_no_password_is_in_the_file(composed: dict[str, Any]) -> None:
    grafana = composed["services"]["dashboards"]["environment"]
    assert re.fullmatch(
        r"\$__file\{/run/heapwatch/grafana-admin-password\}", grafana["GF_SECURITY_ADMIN_PASSWORD"]
    )
    for service in composed["services"].values():
        for name, value in (service.get("environment") or {}).items():
            if re.search("TOKEN|PASSWORD|SECRET", name):
                assert value is None or "/run/heapwatch/" in str(value), name  # None: what the shell says


def test_the_images_are_built_from_files_of_this_repository() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (REPOSITORY / "stack" / "Dockerfile").read_text(), re.MULTILINE)
    admitted = {
        line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    for source in (name for line in copied for name in line.split()):
        assert (REPOSITORY / source).exists(), source
        assert {source, source.split("/")[0]} & admitted, source
    # An image in which the project is installed has what its installation reads, and all packages.
    # Rules are mounted: with them in an image a changed rule would restart the trainer.
    assert "prometheus" not in {source.split("/")[0] for line in copied for source in line.split()}
    for stage in (REPOSITORY / "stack" / "Dockerfile").read_text().split("\nFROM "):
        if re.search(r'pip install -c constraints.txt "?\.', stage):
            names = set(" ".join(re.findall(r"^COPY (.+) \S+$", stage, re.MULTILINE)).split())
            assert {*SOURCES, "pyproject.toml", "README.md", "LICENSE"} <= names


def test_the_configuration_container_fills_the_volumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners: dict[str, int] = {}
    monkeypatch.setattr(os, "chown", lambda path, user, group: owners.update({Path(path).name: user}))
    etc, given, handed = (tmp_path / name for name in ("etc", "given", "handed"))
    for folder in (etc / "targets" / "trainer", given, handed):
        folder.mkdir(parents=True)
    for name in containers.READERS:
        (given / name).write_text("secret\n")
    settings = Settings.from_environment({"HEAPWATCH_DASHBOARDS_PORT": "4000"})
    for _ in range(2):  # `up` runs it again
        containers.prepare(settings, etc, given, handed)
    assert "heapwatch_dashboards: http://127.0.0.1:4000" in (etc / "prometheus.yml").read_text()
    assert (etc / "rules").is_dir()
    rendered = yaml.safe_load((etc / "alertmanager.yml").read_text())
    cleanup = next(receiver for receiver in rendered["receivers"] if receiver["name"] == "cleanup")
    assert cleanup["webhook_configs"][0]["url"] == "http://receiver:9095/alerts"
    (targets,) = json.loads((etc / "targets/alertmanager/stack.json").read_text())
    assert targets["targets"] == ["alertmanager:9093"]
    assert (handed / "token").stat().st_mode & 0o777 == 0o400
    for name in ("prometheus.yml", "targets/stack/stack.json"):  # which other users read
        assert (etc / name).stat().st_mode & 0o777 == 0o644
    assert owners == {
        "alertmanager.yml": 65534,
        "trainer": 65534,
        "token": 65534,
        "webhook-token": 65534,
        "grafana-admin-password": 472,
    }


def test_every_setting_reaches_its_container(composed: dict[str, Any]) -> None:
    """One list of settings makes both ways of running."""
    receiver = set(composed["services"]["receiver"]["environment"])
    inside = {"bind", "port", "token_file"}  # the container's own
    shared = set(SHARED_NAMES.values())
    fields = {
        f"HEAPWATCH_RECEIVER_{field.upper()}"
        for field in ReceiverSettings.model_fields
        if field not in inside | shared
    }
    assert fields <= receiver
    assert set(SHARED_NAMES) <= receiver


def stack_of(state: Path, **environment: str) -> tuple[compose.ComposeStack, Settings]:
    settings = Settings.from_environment({"HEAPWATCH_STATE": str(state), **environment})
    return compose.ComposeStack(settings, print), settings


def test_channels_and_the_files_that_they_name_are_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "chown", lambda *_: None)
    (tmp_path / "chat").write_text("https://chat.example.com/hook")
    file = tmp_path / "notifications.yml"
    file.write_text("slack_configs: [{api_url_file: chat, channel: a}, {api_url_file: chat, channel: b}]\n")
    _, settings = stack_of(tmp_path / "state", HEAPWATCH_NOTIFICATIONS_FILE=str(file))
    (tmp_path / "state").mkdir()
    configuration.make_secrets(settings)
    secrets = settings.token_file.parent
    containers.hand_over(channels(settings.environment), secrets)
    etc, handed = tmp_path / "etc", tmp_path / "handed"
    for folder in (etc / "targets" / "trainer", handed):
        folder.mkdir(parents=True)
    containers.prepare(settings, etc, secrets, handed)
    text = (etc / "alertmanager.yml").read_text()
    people = next(one for one in yaml.safe_load(text)["receivers"] if one["name"] == "people")
    inside = {channel["api_url_file"] for channel in people["slack_configs"]}
    assert inside == {"/run/heapwatch/named-1"}
    assert (handed / "named-1").read_text() == "https://chat.example.com/hook"
    assert "chat.example.com" not in text

    containers.hand_over({}, secrets)
    containers.prepare(settings, etc, secrets, handed)
    assert not list(handed.glob(containers.NAMED_FILES))
    assert "slack" not in (etc / "alertmanager.yml").read_text()


def test_a_wrong_setting_is_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compose, "engine_answers", lambda: True)
    monkeypatch.setattr(compose.ComposeStack, "_run", lambda *_: pytest.fail("something was started"))
    file = tmp_path / "notifications.yml"
    file.write_text("slack_configs: [{api_url_file: /nowhere}]\n")
    with pytest.raises(StackError, match="names a file that cannot be read"):
        stack_of(tmp_path / "state", HEAPWATCH_NOTIFICATIONS_FILE=str(file))[0].up()


def test_docker_mode_without_an_engine_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "engine_answers", lambda: False)
    with pytest.raises(StackError, match=r"no Docker engine answers .* MODE=native"):
        stack_of(tmp_path)[0].up()
