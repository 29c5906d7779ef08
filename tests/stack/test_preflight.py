from __future__ import annotations

import dataclasses
import shutil
import socket
from pathlib import Path

import pytest

from heapwatch import data
from heapwatch_stack import configuration, preflight
from heapwatch_stack.binaries import Binaries, find
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Endpoint, Settings
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


@pytest.fixture(scope="module")
def binaries() -> Binaries:
    return find(Settings.from_environment(), print)


@pytest.mark.slow
def test_the_configuration_of_this_checkout_is_whole(settings: Settings, binaries: Binaries) -> None:
    configuration.lay_out(settings)
    assert len(preflight.check_configuration(settings, binaries)) == 2


RULE = "groups: [{name: x, rules: [{alert: A, expr: 'sum('}]}]"


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("prometheus/rules/broken.yml", RULE, "broken.yml"),
        ("prometheus/rules/broken.yml", "groups: [", "broken.yml"),
        ("prometheus/prometheus.yml", "scrape_configs: [{nonsense: 1}]", "nonsense"),
        ("alerting/alertmanager.yml", None, "nonsense"),
    ],
)
def test_a_broken_file_is_named_in_one_line(
    settings: Settings, binaries: Binaries, file: str, text: str | None, expected: str
) -> None:
    path = settings.data / file
    path.write_text(text if text is not None else "nonsense: 1\n" + path.read_text())
    configuration.lay_out(settings)
    with pytest.raises(StackError, match="is broken, nothing was started") as error:
        preflight.check_configuration(settings, binaries)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("channel", "reason"),
    [
        ("{api_url: 'http://[broken/S3CRET', channel: a}", "missing ']' in host"),
        ("{api_url: S3CRET.example.com}", "unsupported scheme"),
        ("{api_uri: 'https://S3CRET'}", "field api_uri not found"),
    ],
)
def test_a_channel_that_alertmanager_rejects_is_said_without_its_secret(
    settings: Settings, binaries: Binaries, tmp_path: Path, channel: str, reason: str
) -> None:
    file = tmp_path / "notifications.yml"
    file.write_text(f"slack_configs: [{channel}]\n")
    named = dataclasses.replace(settings, environment={"HEAPWATCH_NOTIFICATIONS_FILE": str(file)})
    configuration.lay_out(named)
    with pytest.raises(
        StackError, match=f"alertmanager.yml with .*notifications.yml is broken.*{reason}"
    ) as error:
        preflight.check_configuration(named, binaries)
    assert "S3CRET" not in str(error.value)


@pytest.mark.parametrize(
    ("system", "machine"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "riscv64")]
)
def test_an_unsupported_system_gets_a_hint(system: str, machine: str) -> None:
    reported = f"{system} on {machine} is not supported without Docker: .*MODE=docker"
    with pytest.raises(StackError, match=reported):
        preflight.check_system(system, machine)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_supported_system_passes(machine: str) -> None:
    preflight.check_system("linux", machine)


def test_a_taken_port_is_reported_with_the_name_that_changes_it(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        endpoint = Endpoint("receiver", port, "HEAPWATCH_RECEIVER_PORT", "/")
        reported = rf"receiver cannot listen at .*:{port} \(Address already in use\).*RECEIVER_PORT=NUMBER"
        with pytest.raises(StackError, match=reported):
            preflight.check_ports(settings, [endpoint])
    preflight.check_ports(settings, [endpoint])


def test_an_address_of_another_machine_is_reported(settings: Settings) -> None:
    elsewhere = dataclasses.replace(settings, bind="192.0.2.1")
    with pytest.raises(StackError, match=r"192\.0\.2\.1:12345 \(Cannot assign .* HEAPWATCH_BIND"):
        preflight.check_ports(elsewhere, [Endpoint("x", 12345, "X", "/")])
