from __future__ import annotations

from pathlib import Path

import pytest

from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Settings
from tests.support.repository import REPOSITORY


def test_defaults_are_the_documented_ports_on_loopback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The environment that runs the tests may lie in a folder that a stack keeps its state in.
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    settings = Settings.from_environment({"XDG_STATE_HOME": "/home/someone/state"})
    ports = settings.ports
    assert (ports.trainer, ports.prometheus, ports.alertmanager, ports.receiver, ports.dashboards) == (
        7777, 9090, 9093, 9095, 3009,
    )  # fmt: skip
    assert settings.bind == "127.0.0.1"
    assert settings.state == Path("/home/someone/state/heapwatch/stack")
    assert settings.checkout is None


def test_the_state_folder_of_a_clone_knows_the_clone(tmp_path: Path) -> None:
    settings = Settings.from_environment({"HEAPWATCH_STATE": str(REPOSITORY / ".heapwatch")})
    assert settings.checkout == REPOSITORY
    assert Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path / ".heapwatch")}).checkout is None


def test_what_another_user_may_have_put_beside_the_state_folder_is_no_clone(tmp_path: Path) -> None:
    example = tmp_path / "examples" / "walker" / "__main__.py"
    example.parent.mkdir(parents=True)
    example.touch()
    chosen = {"HEAPWATCH_STATE": str(tmp_path / "state")}
    tmp_path.chmod(0o755)
    assert Settings.from_environment(chosen).checkout == tmp_path
    tmp_path.chmod(0o1777)
    assert Settings.from_environment(chosen).checkout is None


@pytest.mark.parametrize("text", ["abc", "0", "65536", "-1", "9090.0", "٣"])
def test_a_wrong_port_is_named_with_what_it_may_be(text: str) -> None:
    with pytest.raises(
        StackError, match=r"HEAPWATCH_PROMETHEUS_PORT is .*; it must be a port number from 1 to 65535"
    ):
        Settings.from_environment({"HEAPWATCH_PROMETHEUS_PORT": text})


def test_two_services_cannot_have_one_port() -> None:
    with pytest.raises(
        StackError, match="HEAPWATCH_PROMETHEUS_PORT and HEAPWATCH_DASHBOARDS_PORT are both 3009"
    ):
        Settings.from_environment({"HEAPWATCH_PROMETHEUS_PORT": "3009"})


def test_a_wrong_profile_is_named_with_what_it_may_be() -> None:
    with pytest.raises(
        StackError, match=r"HEAPWATCH_PROFILE is 'fast'; it may be one of default, .*aggressive"
    ):
        Settings.from_environment({"HEAPWATCH_PROFILE": "fast"})


def test_each_stack_has_a_folder_of_targets_of_its_own(tmp_path: Path) -> None:
    one, other = (Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path / name)}) for name in "ab")
    assert one.targets != other.targets
    assert one.targets.parent == one.state
    chosen = Settings.from_environment({"HEAPWATCH_TARGETS_DIR": "/y"})
    assert chosen.targets == Path("/y")


def test_a_stack_on_every_address_is_reached_on_loopback() -> None:
    settings = Settings.from_environment({"HEAPWATCH_BIND": "0.0.0.0"})
    assert settings.url(settings.ports.prometheus) == "http://127.0.0.1:9090"


def test_state_may_be_elsewhere(tmp_path: Path) -> None:
    settings = Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path)})
    assert settings.token_file == tmp_path / "secrets" / "token"


def test_links_of_alerts_lead_to_this_stack_unless_the_environment_says_otherwise() -> None:
    settings = Settings.from_environment({"HEAPWATCH_DASHBOARDS_PORT": "4000"})
    assert settings.dashboards_url == "http://127.0.0.1:4000"
    assert settings.runbooks_url == "http://127.0.0.1:9095/runbooks"
    elsewhere = Settings.from_environment({"HEAPWATCH_DASHBOARDS_URL": "https://grafana.example.com/"})
    assert elsewhere.dashboards_url == "https://grafana.example.com"
