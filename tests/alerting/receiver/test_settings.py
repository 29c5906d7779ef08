from pathlib import Path

import pytest

from heapwatch_receiver.settings import Settings, SettingsError, load, token


def write(folder: Path, text: str) -> Path:
    file = folder / "receiver.yml"
    file.write_text(text)
    return file


def test_defaults_need_nothing():
    settings = load(None, {})
    assert (settings.bind, settings.port, settings.dry_run) == ("127.0.0.1", 9095, False)
    assert settings.escalation == "notify"
    assert len(Settings.model_fields) == 12


def test_the_environment_overrides_the_file(tmp_path):
    file = write(tmp_path, "port: 1\ncooldown: 30\n")
    environment = {
        "HEAPWATCH_RECEIVER_PORT": "2",
        "HEAPWATCH_BIND": "0.0.0.0",
        "HEAPWATCH_RECEIVER_RESTART_COMMAND": '[systemctl, restart, "{job}"]',
    }
    settings = load(file, environment)
    assert (settings.port, settings.bind, settings.cooldown) == (2, "0.0.0.0", 30)
    assert settings.restart_command == ("systemctl", "restart", "{job}")
    assert settings.escalation == "restart"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("regular_cooldown: 3", "regular_cooldown: unknown setting; did you mean cooldown?"),
        ("cooldown: -1", "cooldown: -1 is not allowed: Input should be greater than 0"),
        ("cooldown: .inf", "cooldown: inf is not allowed"),
        ("restart_command: [kill, '{pid}']", "unknown placeholder {pid}: allowed are {job} and {instance}"),
        ("restart_command: ['{job}']", "the program itself may not be a placeholder"),
        ("restart_command: sh -c x", "restart_command: 'sh -c x' is not allowed"),
        ("prometheus_url: file:///etc/passwd", "prometheus_url: 'file:///etc/passwd' is not allowed"),
        ("prometheus_url: http://user:secret@host", "prometheus_url:"),
        ("[1, 2]", "a mapping of settings is allowed, not list"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(tmp_path, text, named):
    with pytest.raises(SettingsError) as raised:
        load(write(tmp_path, text), {})
    assert named in str(raised.value)


def test_every_wrong_value_has_its_line(tmp_path):
    with pytest.raises(SettingsError) as raised:
        load(write(tmp_path, "port: x\nbind: 3\n"), {})
    assert len(str(raised.value).splitlines()) == 2


def test_there_is_no_receiver_without_a_token():
    with pytest.raises(SettingsError, match="HEAPWATCH_TOKEN_FILE"):
        token(load(None, {}), {})


@pytest.mark.parametrize("content", ["", "two\nlines", "caf\u00e9"])
def test_a_token_is_one_line_of_ascii(tmp_path, content):
    file = tmp_path / "token"
    file.write_text(content)
    with pytest.raises(SettingsError, match="one line"):
        token(load(None, {"HEAPWATCH_TOKEN_FILE": str(file)}), {})


def test_a_missing_secret_is_named(tmp_path):
    settings = load(None, {"HEAPWATCH_TOKEN_FILE": str(tmp_path / "none")})
    with pytest.raises(SettingsError, match=r"token_file: cannot read .*none: No such file or directory$"):
        token(settings, {})


def test_a_misspelt_setting_in_the_environment_is_not_skipped():
    with pytest.raises(
        SettingsError, match=r"nothing reads HEAPWATCH_RECEIVER_DRYRUN; did you mean .*_DRY_RUN"
    ):
        load(None, {"HEAPWATCH_RECEIVER_DRYRUN": "true"})
    assert load(None, {"HEAPWATCH_TARGETS_DIR": "/x", "HEAPWATCH_STATE": "/x"}).dry_run is False
