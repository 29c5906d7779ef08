"""docker-compose.yml as Debian's own docker-compose reads it, and what its configuration container does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from heapwatch import data
from heapwatch.stack import compose, containers
from heapwatch.stack.endpoints import endpoints
from heapwatch.stack.errors import StackError
from heapwatch.stack.releases import ALERTMANAGER, GRAFANA, PROMETHEUS
from heapwatch.stack.settings import Settings
from tests.repository import REPOSITORY


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    assert shutil.which("docker-compose"), "docker-compose is not on PATH: apt-get install docker-compose"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEAPWATCH_")}
    command = ["docker-compose", "-f", str(REPOSITORY / "docker-compose.yml"), "config"]
    done = subprocess.run(command, text=True, capture_output=True, env=clean, check=False)
    assert done.returncode == 0, done.stderr
    return dict(yaml.safe_load(done.stdout))


def test_the_services_are_those_of_native_mode(composed: dict[str, Any]) -> None:
    native = endpoints(Settings.from_environment({"HEAPWATCH_CHECKOUT": str(REPOSITORY)}), grafana=True)
    assert set(composed["services"]) == {*native, "configuration"}
    for name, endpoint in native.items():
        (published,) = composed["services"][name]["ports"]
        assert published == f"127.0.0.1:{endpoint.port}:{endpoint.port}/tcp"


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


def test_no_password_stands_in_the_file(composed: dict[str, Any]) -> None:
    grafana = composed["services"]["dashboards"]["environment"]
    assert re.fullmatch(
        r"\$\$?__file\{/run/heapwatch/grafana-admin-password\}", grafana["GF_SECURITY_ADMIN_PASSWORD"]
    )
    for service in composed["services"].values():
        for name, value in (service.get("environment") or {}).items():
            if re.search("TOKEN|PASSWORD|SECRET", name):
                assert "/run/heapwatch/" in str(value), name


def test_the_images_are_built_from_files_of_this_repository() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (REPOSITORY / "stack" / "Dockerfile").read_text(), re.MULTILINE)
    admitted = {
        line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    for source in (name for line in copied for name in line.split()):
        assert (REPOSITORY / source).exists(), source
        assert source.split("/")[0] in admitted, source


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
    for _ in range(2):  # `up` runs it again
        containers.prepare(data.folder(), etc, given, handed)
    assert (etc / "prometheus.yml").exists()
    assert (etc / "rules").is_dir()
    rendered = yaml.safe_load((etc / "alertmanager.yml").read_text())
    cleanup = next(receiver for receiver in rendered["receivers"] if receiver["name"] == "cleanup")
    assert cleanup["webhook_configs"][0]["url"] == "http://receiver:9095/alerts"
    (targets,) = json.loads((etc / "targets/alertmanager/stack.json").read_text())
    assert targets["targets"] == ["alertmanager:9093"]
    assert (handed / "token").stat().st_mode & 0o777 == 0o400
    assert owners == {
        "alertmanager.yml": 65534,
        "trainer": 65534,
        "token": 65534,
        "webhook-token": 65534,
        "grafana-admin-password": 472,
    }


def test_the_configuration_container_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "chown", lambda *_: None)
    (tmp_path / "etc" / "targets" / "trainer").mkdir(parents=True)
    with pytest.raises(StackError, match="there is no token: start the stack with make up"):
        containers.prepare(data.folder(), tmp_path / "etc", tmp_path, tmp_path)


def test_docker_mode_without_an_engine_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "engine_answers", lambda: False)
    stack = compose.ComposeStack(Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path)}), print)
    with pytest.raises(StackError, match=r"no Docker engine answers .* MODE=native"):
        stack.up()
