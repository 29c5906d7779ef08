"""alerting/alertmanager.yml with the channels of the user, judged by Alertmanager's own tool."""

from pathlib import Path

import pytest
import yaml

from heapwatch_stack.alertmanager import channels, hide, render
from heapwatch_stack.errors import StackError
from tests.support.programs import amtool

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "alerting" / "alertmanager.yml"
TRAINER = {"job": "trainer", "instance": "127.0.0.1:7777"}


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


def rendered(people=None):
    return render(SOURCE, "http://127.0.0.1:19095", Path("/run/token"), people or {})


def notifications(folder, text):
    """The channels of such a file."""
    (folder / "notifications.yml").write_text(text)
    return channels({"HEAPWATCH_NOTIFICATIONS_FILE": str(folder / "notifications.yml")})


def test_nobody_is_notified_by_default(tmp_path):
    text = rendered(channels({}))
    accepted(tmp_path, text)
    assert receiver(text, "people") == {"name": "people"}


def test_the_receiver_is_where_it_is_said_to_be(tmp_path):
    text = rendered()
    accepted(tmp_path, text)
    for name in ("cleanup", "heartbeat"):
        (webhook,) = receiver(text, name)["webhook_configs"]
        assert webhook["url"] == "http://127.0.0.1:19095/alerts"
        assert webhook["http_config"]["authorization"] == {"type": "Bearer", "credentials_file": "/run/token"}


EVERY_CHANNEL = """
slack_configs:
  - api_url_file: slack
    channel: "#trainers"
email_configs:
  - {to: one@example.com, from: heapwatch@example.com, smarthost: "smtp.example.com:587"}
  - {to: two@example.com, from: heapwatch@example.com, smarthost: "smtp.example.com:587", html: own text,
     auth_username: heapwatch, auth_password_file: password}
webhook_configs:
  - url: https://chat.example.com/hook
    http_config: {authorization: {credentials_file: password}}
discord_configs: [{webhook_url: "https://discord.example.com/hook"}]
opsgenie_configs: [{api_key: key}]
pagerduty_configs: [{routing_key: key}]
pushover_configs: [{user_key: key, token: key, title: own title}]
"""


def test_every_channel_gets_our_texts_and_keeps_its_secrets_in_files(tmp_path):
    slack = secret(tmp_path, "slack", "https://hooks.example.com/services/T0/B0/secret")
    password = secret(tmp_path, "password", "hunter2")
    people = notifications(tmp_path, EVERY_CHANNEL)
    text = rendered(people)
    accepted(tmp_path, text)
    shown = receiver(text, "people")
    (chat,) = shown["slack_configs"]
    assert (chat["api_url_file"], chat["text"]) == (slack, '{{ template "heapwatch.slack" . }}')
    first, second = shown["email_configs"]
    assert (first["html"], second["html"]) == ('{{ template "heapwatch.email" . }}', "own text")
    assert second["auth_password_file"] == password
    (webhook,) = shown["webhook_configs"]
    assert webhook["http_config"]["authorization"]["credentials_file"] == password
    assert shown["discord_configs"][0]["title"] == '{{ template "heapwatch.title" . }}'
    assert shown["pushover_configs"][0]["title"] == "own title"
    assert "hunter2" not in text
    assert "services/T0/B0" not in text


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "slack_configs: []\n"])
def test_a_file_without_channels_is_none(tmp_path, text):
    accepted(tmp_path, rendered(notifications(tmp_path, text)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("slack: [{api_url: S3CRET}]", "may only have lists of mappings such as slack_configs"),
        ("[S3CRET]", "may only have lists of mappings such as slack_configs"),
        ("slack_configs: {api_url: S3CRET}", "may only have lists of mappings such as slack_configs"),
        ("slack_configs: [S3CRET]", "may only have lists of mappings such as slack_configs"),
        ("slack_configs:\n- api_url: 'S3CRET", "is no YAML in line 2"),
        ("slack_configs: [{api_url_file: nowhere}]", "names a file that cannot be read: .*nowhere"),
        ("slack_configs: [{api_url_file: /dev/null}]", "names a file that cannot be read: .*a regular file"),
    ],
)
def test_a_wrong_file_is_one_clear_line_without_a_secret(tmp_path, text, says):
    with pytest.raises(StackError, match=f"^HEAPWATCH_NOTIFICATIONS_FILE.*{says}") as raised:
        notifications(tmp_path, text)
    assert "\n" not in str(raised.value)
    assert "S3CRET" not in str(raised.value)


def test_no_file_is_said():
    with pytest.raises(StackError, match=r"^HEAPWATCH_NOTIFICATIONS_FILE is '/nowhere', which cannot"):
        channels({"HEAPWATCH_NOTIFICATIONS_FILE": "/nowhere"})


def test_the_values_of_channels_are_hidden_in_what_alertmanager_says():
    people = {"slack_configs": [{"api_url": "S3CRET.example", "actions": [{"url": "S3CRET.example/a"}]}]}
    assert hide('parse "S3CRET.example/a": at S3CRET.example', people) == 'parse "…": at …'


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        (
            {"alertname": "Watchdog", "kind": "health", "component": "watchdog", "severity": "warning"},
            "heartbeat",
        ),
        ({"kind": "leak", "resource": "memory", "component": "watchdog"}, "people"),  # a program of that name
        (
            {"kind": "leak", "action": "cleanup", "severity": "warning", "resource": "memory"},
            "cleanup,people",
        ),
        ({"kind": "threshold", "action": "cleanup", "severity": "critical"}, "cleanup,people"),
        ({"kind": "growth", "severity": "warning"}, "people"),
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
