"""alerting/alertmanager.yml and what the environment makes of it, judged by Alertmanager's own tool."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from heapwatch_stack.alertmanager import render
from tests.alerting.harness import find

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "alerting" / "alertmanager.yml"
TRAINER = {"job": "trainer", "instance": "127.0.0.1:7777"}


def amtool(*arguments: str) -> str:
    """What it prints; fails unless it accepts what it is given."""
    command = [find("amtool"), *arguments]
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def accepted(folder: Path, text: str) -> None:
    """Fails unless amtool accepts the text where its templates lie beside it."""
    (folder / "templates").symlink_to(ROOT / "alerting" / "templates")
    (folder / "alertmanager.yml").write_text(text)
    amtool("check-config", str(folder / "alertmanager.yml"))


def secret(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text + "\n")
    return str(folder / name)


def receiver(text: str, name: str) -> dict:
    return next(r for r in yaml.safe_load(text)["receivers"] if r["name"] == name)


def test_the_source_is_valid_as_it_is():
    assert "1 templates" in amtool("check-config", str(SOURCE))


def test_nobody_is_notified_by_default(tmp_path):
    text = render(SOURCE, {})
    accepted(tmp_path, text)
    assert receiver(text, "people") == {"name": "people"}


def test_the_receiver_is_where_the_environment_says(tmp_path):
    text = render(
        SOURCE,
        {
            "HEAPWATCH_RECEIVER_URL": "http://127.0.0.1:19095/",
            "HEAPWATCH_ALERTMANAGER_TOKEN_FILE": "/run/token",
        },
    )
    accepted(tmp_path, text)
    for name in ("cleanup", "heartbeat"):
        (webhook,) = receiver(text, name)["webhook_configs"]
        assert webhook["url"] == "http://127.0.0.1:19095/alerts"
        assert webhook["http_config"]["authorization"] == {"type": "Bearer", "credentials_file": "/run/token"}


def test_every_channel_at_once(tmp_path):
    slack = secret(tmp_path, "slack", "https://hooks.example.com/services/T0/B0/secret")
    webhook = secret(tmp_path, "webhook", "https://chat.example.com/hook?token=secret")
    password = secret(tmp_path, "password", "hunter2")
    text = render(
        SOURCE,
        {
            "HEAPWATCH_SLACK_URL_FILE": slack,
            "HEAPWATCH_SLACK_CHANNEL": "#trainers",
            "HEAPWATCH_EMAIL_TO": "one@example.com, two@example.com",
            "HEAPWATCH_EMAIL_FROM": "heapwatch@example.com",
            "HEAPWATCH_SMTP_HOST": "smtp.example.com:587",
            "HEAPWATCH_SMTP_USER": "heapwatch",
            "HEAPWATCH_SMTP_PASSWORD_FILE": password,
            "HEAPWATCH_WEBHOOK_URL_FILE": webhook,
        },
    )
    accepted(tmp_path, text)
    people = receiver(text, "people")
    assert people["slack_configs"][0]["api_url_file"] == slack
    assert people["slack_configs"][0]["channel"] == "#trainers"
    assert people["email_configs"][0]["auth_password_file"] == password
    assert people["email_configs"][0]["require_tls"] is True
    assert people["webhook_configs"][0]["url"] == "https://chat.example.com/hook?token=secret"
    assert "hunter2" not in text
    assert "services/T0/B0" not in text


MAIL = {
    "HEAPWATCH_EMAIL_TO": "one@example.com",
    "HEAPWATCH_EMAIL_FROM": "two@example.com",
    "HEAPWATCH_SMTP_HOST": "localhost:25",
}


def test_mail_without_tls_or_login(tmp_path):
    text = render(SOURCE, MAIL | {"HEAPWATCH_SMTP_TLS": "off"})
    accepted(tmp_path, text)
    (channel,) = receiver(text, "people")["email_configs"]
    assert channel["require_tls"] is False
    assert "auth_username" not in channel


@pytest.mark.parametrize(
    ("environment", "names", "says"),
    [
        ({"HEAPWATCH_RECEIVER_URL": "127.0.0.1:9095"}, "HEAPWATCH_RECEIVER_URL", "http://"),
        ({"HEAPWATCH_SLACK_URL": "hooks.example.com"}, "HEAPWATCH_SLACK_URL", "http://"),
        ({"HEAPWATCH_SLACK_URL": "http://[broken"}, "HEAPWATCH_SLACK_URL", "http://"),
        ({"HEAPWATCH_SLACK_URL": "http://a b"}, "HEAPWATCH_SLACK_URL", "http://"),
        ({"HEAPWATCH_SLACK_URL_FILE": "/nowhere/slack"}, "HEAPWATCH_SLACK_URL_FILE", "cannot be read"),
        ({"HEAPWATCH_SLACK_URL_FILE": "/dev/null"}, "HEAPWATCH_SLACK_URL_FILE", "a regular file is allowed"),
        ({"HEAPWATCH_SLACK_CHANNEL": "#a"}, "HEAPWATCH_SLACK_URL_FILE", "set both"),
        (
            {"HEAPWATCH_SLACK_URL": "http://a", "HEAPWATCH_SLACK_URL_FILE": "b"},
            "HEAPWATCH_SLACK_URL",
            "one of them",
        ),
        ({"HEAPWATCH_SLACK_WEBHOOK": "http://a"}, "HEAPWATCH_SLACK_WEBHOOK", "HEAPWATCH_SLACK_URL_FILE"),
        ({"HEAPWATCH_EMAIL_TO": "one@example.com"}, "HEAPWATCH_EMAIL_FROM", "set both"),
        ({"HEAPWATCH_SMTP_HOST": "localhost:25"}, "HEAPWATCH_EMAIL_TO", "set both"),
        (MAIL | {"HEAPWATCH_EMAIL_TO": "one"}, "HEAPWATCH_EMAIL_TO", "someone@example.com"),
        (MAIL | {"HEAPWATCH_SMTP_HOST": "localhost"}, "HEAPWATCH_SMTP_HOST", "host:port"),
        (MAIL | {"HEAPWATCH_SMTP_HOST": "localhost:99999"}, "HEAPWATCH_SMTP_HOST", "host:port"),
        (MAIL | {"HEAPWATCH_SMTP_TLS": "maybe"}, "HEAPWATCH_SMTP_TLS", "required or off"),
        (MAIL | {"HEAPWATCH_SMTP_USER": "me"}, "HEAPWATCH_SMTP_PASSWORD_FILE", "set both"),
        ({"HEAPWATCH_WEBHOOK_URL": "ftp://a"}, "HEAPWATCH_WEBHOOK_URL", "http://"),
    ],
)
def test_a_wrong_value_is_one_clear_line(environment, names, says):
    with pytest.raises(ValueError, match=names) as raised:
        render(SOURCE, environment)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_secret_address_is_not_shown_in_the_error():
    with pytest.raises(ValueError, match="HEAPWATCH_SLACK_URL") as raised:
        render(SOURCE, {"HEAPWATCH_SLACK_URL": "hooks.example.com/T0/B0/secret"})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        (
            {"alertname": "Watchdog", "kind": "health", "component": "watchdog", "severity": "warning"},
            "heartbeat",
        ),
        (
            {"kind": "leak", "action": "cleanup", "severity": "warning", "resource": "memory"},
            "cleanup,people",
        ),
        ({"kind": "threshold", "action": "cleanup", "severity": "critical"}, "cleanup,people"),
        (
            {"kind": "threshold", "action": "cleanup", "severity": "critical", "level": "emergency"},
            "cleanup,people",
        ),
        ({"kind": "threshold", "severity": "warning"}, "people"),
        ({"kind": "growth", "severity": "warning"}, "people"),
        ({"kind": "forecast", "severity": "critical"}, "people"),
        ({"kind": "health", "severity": "critical", "component": "process"}, "people"),
        ({"kind": "tomorrow", "severity": "warning"}, "people"),
    ],
)
def test_labels_choose_who_is_notified(labels, receivers):
    pairs = [f"{name}={value}" for name, value in (TRAINER | labels).items()]
    amtool("config", "routes", "test", f"--config.file={SOURCE}", f"--verify.receivers={receivers}", *pairs)


def test_a_trainer_that_is_down_is_reported_at_once_and_once_a_day():
    """It may be lost in a second, and stays in the list for a day."""
    routes = yaml.safe_load(SOURCE.read_text())["route"]["routes"]
    (route,) = (one for one in routes if 'component="process"' in one["matchers"])
    assert (route["group_wait"], route["repeat_interval"]) == ("10s", "1d")


def test_routes_never_name_an_alert():
    assert "alertname" not in SOURCE.read_text()


def test_an_empty_value_is_none():
    assert render(SOURCE, {"HEAPWATCH_SLACK_URL": "", "HEAPWATCH_EMAIL_TO": ""}) == render(SOURCE, {})


def test_the_rest_of_the_environment_does_not_matter():
    assert render(SOURCE, dict(os.environ) | {"HEAPWATCH_PROFILE": "default"})
