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
from tests.support import programs
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
    for name in ("promtool", "amtool"):
        programs.find(name)
    return find(Settings.from_environment(), print)


@pytest.mark.slow
def test_the_configuration_of_this_checkout_is_whole(settings: Settings, binaries: Binaries) -> None:
    configuration.lay_out(settings)
    preflight.check_configuration(settings, binaries)


RULE = "groups: [{name: x, rules: [{alert: A, expr: 'sum('}]}]"


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [("prometheus/rules/broken.yml", RULE, "broken.yml"), ("alerting/alertmanager.yml", None, "nonsense")],
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


def test_a_state_folder_too_deep_for_a_socket_is_said(tmp_path: Path) -> None:
    preflight.check_system(tmp_path / "sock")
    with pytest.raises(StackError, match="too long for a socket: set HEAPWATCH_STATE to a shorter folder"):
        preflight.check_system(tmp_path / ("deep" * 30) / "sock")


def test_a_taken_port_is_reported_with_the_name_that_changes_it(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        endpoint = Endpoint("receiver", port, "HEAPWATCH_RECEIVER_PORT", "/")
        reported = rf"receiver cannot listen at .*:{port} \(Address already in use\).*RECEIVER_PORT=NUMBER"
        with pytest.raises(StackError, match=reported):
            preflight.check_ports(settings, [endpoint])
    preflight.check_ports(settings, [endpoint])
