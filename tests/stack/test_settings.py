from __future__ import annotations

import re
from pathlib import Path

import pytest

from heapwatch.runtime.environment import KNOWN
from heapwatch_receiver.settings import Settings as ReceiverSettings
from heapwatch_stack import services
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Settings, refuse_unknown
from tests.support.repository import REPOSITORY, SOURCES


def test_defaults_are_the_documented_ports_on_loopback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The environment that runs the tests may lie in a folder that a stack keeps its state in.
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    settings = Settings.from_environment({"XDG_STATE_HOME": "/home/someone/state"})
    assert [one.port for one in settings.services.values()] == [9090, 9093, 9095, 3009, 7777]
    assert settings.bind == "127.0.0.1"
    assert settings.state == Path("/home/someone/state/heapwatch/stack")
    assert settings.checkout is None


def test_the_state_folder_of_a_clone_knows_the_clone(tmp_path: Path) -> None:
    settings = Settings.from_environment({"HEAPWATCH_STATE": str(REPOSITORY / ".heapwatch")})
    assert settings.checkout == REPOSITORY
    assert Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path / ".heapwatch")}).checkout is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *(
            ("PROMETHEUS_PORT", text, f"is {text!r}; it must be a port number from 1 to 65535")
            for text in ("abc", "0", "65536")
        ),
        ("PROMETHEUS_PORT", "3009", "and HEAPWATCH_DASHBOARDS_PORT are both 3009"),
        ("PROFILE", "fast", "is 'fast'; it may be one of default, .*aggressive"),
    ],
)
def test_a_wrong_value_is_named_with_what_it_may_be(name: str, value: str, expected: str) -> None:
    with pytest.raises(StackError, match=f"HEAPWATCH_{name} {expected}"):
        Settings.from_environment({f"HEAPWATCH_{name}": value})


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "default"),
        ({"PROFILE": "aggressive"}, "aggressive"),
        ({"HEAPWATCH_PROFILE": "aggressive"}, "aggressive"),
        ({"HEAPWATCH_PROFILE": "walker", "PROFILE": "aggressive"}, "walker"),
        ({"HEAPWATCH_PROFILE": "", "PROFILE": ""}, "default"),
    ],
)
def test_the_profile_has_the_name_of_make_or_that_of_heapwatch(
    environment: dict[str, str], expected: str
) -> None:
    settings = Settings.from_environment(environment)
    assert settings.profile == expected
    assert services.environment(settings)["HEAPWATCH_PROFILE"] == expected


def test_an_unknown_profile_is_named_with_its_variable() -> None:
    with pytest.raises(StackError, match=r"^PROFILE is 'fast'; it may be one of default, .*aggressive"):
        Settings.from_environment({"PROFILE": "fast"})


def test_each_stack_has_a_folder_of_targets_of_its_own(tmp_path: Path) -> None:
    one, other = (Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path / name)}) for name in "ab")
    assert one.targets != other.targets
    assert one.targets.parent == one.state
    chosen = Settings.from_environment({"HEAPWATCH_TARGETS_DIR": "/y"})
    assert chosen.targets == Path("/y")


def test_a_stack_on_every_address_is_reached_on_loopback() -> None:
    settings = Settings.from_environment({"HEAPWATCH_BIND": "0.0.0.0"})
    assert settings.url("prometheus") == "http://127.0.0.1:9090"


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("HEAPWATCH_RECEIVER_DRYRUN", "HEAPWATCH_RECEIVER_DRY_RUN"),
        ("HEAPWATCH_PROMETEUS_PORT", "HEAPWATCH_PROMETHEUS_PORT"),
    ],
)
def test_a_misspelt_name_is_reported_with_the_nearest_known_one(misspelt: str, meant: str) -> None:
    with pytest.raises(StackError, match=f"nothing reads {misspelt}; did you mean {meant}"):
        refuse_unknown({misspelt: "true", "HOME": "/"})


def test_known_names_of_stack_and_receiver_pass() -> None:
    refuse_unknown({"HEAPWATCH_STATE": "/x", "HEAPWATCH_RECEIVER_DRY_RUN": "true", "PATH": "/bin"})


def test_every_name_that_the_package_reads_is_known() -> None:
    receiver = {f"HEAPWATCH_RECEIVER_{field.upper()}" for field in ReceiverSettings.model_fields}
    files = [file for folder in SOURCES for file in (REPOSITORY / folder).rglob("*.py")]
    read = {
        name
        for file in files
        for name in re.findall(r'"(HEAPWATCH_[A-Z_]*[A-Z])"', file.read_text(encoding="utf-8"))
        if "_TEST_" not in name
    }
    assert len(read) > 15
    assert read - KNOWN - receiver == set()
