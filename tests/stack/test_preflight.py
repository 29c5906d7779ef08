from __future__ import annotations

import dataclasses
import os
import shutil
import socket
from pathlib import Path

import pytest

from heapwatch import data
from heapwatch.http.signing import webhook_token
from heapwatch_stack import configuration, preflight
from heapwatch_stack.binaries import Binaries, find
from heapwatch_stack.endpoints import Endpoint
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Settings
from tests.support.repository import REPOSITORY


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Shipped configuration that a test may break, laid out in a state folder of its own."""
    environment = {
        "HEAPWATCH_CHECKOUT": str(REPOSITORY),
        "HEAPWATCH_STATE": str(tmp_path / "state"),
        "HEAPWATCH_TARGETS_DIR": str(tmp_path / "targets"),
    }
    whole = Settings.from_environment(environment)
    for folder in ("prometheus", "alerting"):
        shutil.copytree(data.path(folder), tmp_path / "data" / folder)
    return dataclasses.replace(whole, data=tmp_path / "data")


@pytest.fixture
def binaries() -> Binaries:
    return find(Settings.from_environment(), print)


def test_data_of_a_newer_prometheus_are_not_given_to_one_that_cannot_read_them(
    settings: Settings, binaries: Binaries
) -> None:
    def binary(version: str) -> Binaries:
        prometheus = dataclasses.replace(binaries.prometheus, version=version, source="/usr/bin on PATH")
        return dataclasses.replace(binaries, prometheus=prometheus)

    (settings.state / "data" / "prometheus").mkdir(parents=True)
    for version in ("2.42.0", "2.53.1", "3.13.2", "2.55.0", "2.55.0"):
        preflight.check_data(settings, binary(version))
    with pytest.raises(StackError, match=r"Prometheus 3\.13\.2 wrote .*/data/prometheus, which 2\.42\.0"):
        preflight.check_data(settings, binary("2.42.0"))
    (settings.state / "data" / "prometheus").rmdir()
    preflight.check_data(settings, binary("2.42.0"))


def test_the_configuration_of_this_checkout_is_whole(settings: Settings, binaries: Binaries) -> None:
    configuration.lay_out(settings)
    assert len(preflight.check_configuration(settings, binaries)) >= 2


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        (
            "prometheus/rules/broken.yml",
            "groups: [{name: x, rules: [{alert: A, expr: 'sum('}]}]",
            "broken.yml",
        ),
        ("prometheus/rules/broken.yml", "groups: [", "broken.yml"),
        ("prometheus/prometheus.yml", "scrape_configs: [{nonsense: 1}]", "nonsense"),
        ("alerting/alertmanager.yml", None, "nonsense"),
    ],
)
def test_a_broken_file_is_named_in_one_line(
    settings: Settings, binaries: Binaries, file: str, text: str | None, told: str
) -> None:
    path = settings.data / file
    path.write_text(text if text is not None else "nonsense: 1\n" + path.read_text())
    configuration.lay_out(settings)
    with pytest.raises(StackError, match="is broken, nothing was started") as error:
        preflight.check_configuration(settings, binaries)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_wrong_channel_is_named(settings: Settings) -> None:
    wrong = dataclasses.replace(settings, environment={"HEAPWATCH_SLACK_URL": "not an address"})
    with pytest.raises(StackError, match="HEAPWATCH_SLACK_URL must be an http"):
        configuration.lay_out(wrong)


def test_laying_out_twice_keeps_the_token_and_touches_no_file(settings: Settings) -> None:
    configuration.lay_out(settings)
    files = [
        settings.token_file,
        settings.etc / "alertmanager.yml",
        settings.etc / "targets/stack/stack.json",
    ]
    before = [(file.read_text(), file.stat().st_mtime_ns) for file in files]
    configuration.lay_out(settings)
    assert [(file.read_text(), file.stat().st_mtime_ns) for file in files] == before
    assert settings.token_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("system", "machine"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "riscv64")]
)
def test_an_unsupported_system_is_told_what_it_can_do(system: str, machine: str) -> None:
    with pytest.raises(
        StackError, match=f"{system} on {machine} is not supported without Docker: .*MODE=docker"
    ):
        preflight.check_system(system, machine)


def test_supported_systems_pass() -> None:
    for machine in ("x86_64", "aarch64"):
        preflight.check_system("linux", machine)


def test_a_taken_port_is_told_with_who_holds_it(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        endpoint = Endpoint("receiver", port, "HEAPWATCH_RECEIVER_PORT", "/")
        with pytest.raises(
            StackError, match=rf"port {port} \(receiver\) is taken by process {os.getpid()} \(.*python"
        ):
            preflight.check_ports(settings, [endpoint])
    preflight.check_ports(settings, [endpoint])


def test_an_address_of_another_machine_is_told(settings: Settings) -> None:
    elsewhere = dataclasses.replace(settings, bind="192.0.2.1")
    with pytest.raises(
        StackError, match=r"HEAPWATCH_BIND is '192\.0\.2\.1', which is not an address of this machine"
    ):
        preflight.check_ports(elsewhere, [Endpoint("x", 12345, "X", "/")])


@pytest.mark.parametrize("name", ["HEAPWATCH_TOKEN", "HEAPWATCH_TOKEN_FILE"])
def test_a_token_of_the_environment_is_that_of_every_service(
    settings: Settings, tmp_path: Path, name: str
) -> None:
    (tmp_path / "own-token").write_text("chosen\n")
    given = {"HEAPWATCH_TOKEN": "chosen", "HEAPWATCH_TOKEN_FILE": str(tmp_path / "own-token")}
    told = dataclasses.replace(settings, environment=settings.environment | {name: given[name]})
    configuration.lay_out(told)
    assert told.token_file.read_text() == "chosen\n"
    assert told.webhook_token_file.read_text() == webhook_token("chosen") + "\n"
    assert {file.stat().st_mode & 0o777 for file in told.token_file.parent.iterdir()} == {0o600}
    assert settings.logs.stat().st_mode & 0o777 == 0o700


def test_a_token_that_cannot_travel_is_told(settings: Settings) -> None:
    wrong = dataclasses.replace(settings, environment={"HEAPWATCH_TOKEN": "two words"})
    with pytest.raises(StackError, match="HEAPWATCH_TOKEN or HEAPWATCH_TOKEN_FILE cannot be used"):
        configuration.lay_out(wrong)
