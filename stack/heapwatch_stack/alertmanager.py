"""Renders alerting/alertmanager.yml, since Alertmanager does not read the environment itself.

HEAPWATCH_RECEIVER_URL        address of the receiver, without a path
HEAPWATCH_ALERTMANAGER_TOKEN_FILE  file with the bearer token that Alertmanager sends to the receiver
HEAPWATCH_SLACK_URL[_FILE]    incoming webhook, as the value or in a file; also HEAPWATCH_SLACK_CHANNEL
HEAPWATCH_EMAIL_TO, _FROM     comma-separated recipients, and the sender
HEAPWATCH_SMTP_HOST           host:port of the mail server; if it needs them, HEAPWATCH_SMTP_USER,
                              HEAPWATCH_SMTP_PASSWORD_FILE, HEAPWATCH_SMTP_TLS=off
HEAPWATCH_WEBHOOK_URL[_FILE]  any service that accepts Alertmanager's webhook JSON

Set secrets by file where possible: Alertmanager itself reads a Slack address or a password from the file. An
address that is set directly, and the address of a webhook, become part of the rendered text. Write that text
to a file of mode 0600.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from heapwatch.runtime.own_files import read_text

PEOPLE = "people"
TITLE = '{{ template "heapwatch.title" . }}'
_CHANNEL_NAMES = {
    "HEAPWATCH_SLACK_": ("URL", "URL_FILE", "CHANNEL"),
    "HEAPWATCH_EMAIL_": ("TO", "FROM"),
    "HEAPWATCH_SMTP_": ("HOST", "USER", "PASSWORD_FILE", "TLS"),
    "HEAPWATCH_WEBHOOK_": ("URL", "URL_FILE"),
}
_ADDRESS = re.compile(r"[^@\s,]+@[^@\s,]+")
_HOST_AND_PORT = re.compile(r"(\[[0-9a-fA-F:]+\]|[^\s:/]+):([0-9]{1,5})")


def render(source: Path, environment: Mapping[str, str]) -> str:
    """Alertmanager's configuration: `source` with the receiver and the channels that the environment names.

    Raises:
        ValueError: a variable is unknown, missing or wrong; one line with its name and what is allowed.

    """
    _refuse_unknown(environment)
    configuration = yaml.safe_load(source.read_text(encoding="utf-8"))
    receivers = {receiver["name"]: receiver for receiver in configuration["receivers"]}
    for name in ("cleanup", "heartbeat"):
        for webhook in receivers[name]["webhook_configs"]:
            if url := environment.get("HEAPWATCH_RECEIVER_URL"):
                webhook["url"] = _url("HEAPWATCH_RECEIVER_URL", url).rstrip("/") + "/alerts"
            if file := environment.get("HEAPWATCH_ALERTMANAGER_TOKEN_FILE"):
                webhook["http_config"]["authorization"]["credentials_file"] = file
    channels = {
        "slack_configs": _slack(environment),
        "email_configs": _email(environment),
        "webhook_configs": _webhook(environment),
    }
    receivers[PEOPLE].update({kind: [channel] for kind, channel in channels.items() if channel})
    text = yaml.dump(configuration, Dumper=_PlainDumper, sort_keys=False, width=120)
    return (
        f"# Rendered from {source.name}: change that file, or the environment, instead of this one.\n{text}"
    )


class _PlainDumper(yaml.SafeDumper):
    """Writes the values of YAML anchors in full, which is easier to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _slack(environment: Mapping[str, str]) -> dict[str, Any] | None:
    url, file = _url_or_file(environment, "HEAPWATCH_SLACK_URL")
    if not url:
        _needs(environment, "HEAPWATCH_SLACK_CHANNEL", "HEAPWATCH_SLACK_URL_FILE")
        return None
    channel = {"api_url_file": str(Path(file).absolute())} if file else {"api_url": url}
    if name := environment.get("HEAPWATCH_SLACK_CHANNEL"):
        channel["channel"] = name
    return {
        **channel,
        "send_resolved": True,
        "title": '{{ template "heapwatch.slack.title" . }}',
        "title_link": "{{ (index .Alerts 0).Annotations.dashboard_url }}",
        "text": '{{ template "heapwatch.slack" . }}',
    }


def _email(environment: Mapping[str, str]) -> dict[str, Any] | None:
    recipients = environment.get("HEAPWATCH_EMAIL_TO")
    needed = ("HEAPWATCH_EMAIL_FROM", "HEAPWATCH_SMTP_HOST")
    if not recipients:
        for name in (*needed, "HEAPWATCH_SMTP_USER", "HEAPWATCH_SMTP_PASSWORD_FILE", "HEAPWATCH_SMTP_TLS"):
            _needs(environment, name, "HEAPWATCH_EMAIL_TO")
        return None
    for name in needed:
        _needs(environment, "HEAPWATCH_EMAIL_TO", name)
    for name in ("HEAPWATCH_EMAIL_TO", "HEAPWATCH_EMAIL_FROM"):
        for address in environment[name].split(","):
            if not _ADDRESS.fullmatch(address.strip()):
                raise ValueError(
                    f"{name} has {address.strip()!r}; it must be an address such as someone@example.com"
                )
    channel = {
        "to": recipients,
        "from": environment["HEAPWATCH_EMAIL_FROM"],
        "smarthost": _host_and_port("HEAPWATCH_SMTP_HOST", environment["HEAPWATCH_SMTP_HOST"]),
        "require_tls": _tls(environment.get("HEAPWATCH_SMTP_TLS") or "required"),
        "send_resolved": True,
        "headers": {"Subject": TITLE},
        "html": '{{ template "heapwatch.email" . }}',
    }
    user, file = environment.get("HEAPWATCH_SMTP_USER"), environment.get("HEAPWATCH_SMTP_PASSWORD_FILE")
    if user or file:
        _needs(environment, "HEAPWATCH_SMTP_USER", "HEAPWATCH_SMTP_PASSWORD_FILE")
        _needs(environment, "HEAPWATCH_SMTP_PASSWORD_FILE", "HEAPWATCH_SMTP_USER")
        _read("HEAPWATCH_SMTP_PASSWORD_FILE", file or "")
        channel |= {"auth_username": user or "", "auth_password_file": str(Path(file or "").absolute())}
    return channel


def _webhook(environment: Mapping[str, str]) -> dict[str, Any] | None:
    url, _ = _url_or_file(environment, "HEAPWATCH_WEBHOOK_URL")
    return {"url": url} if url else None  # also from a file, which Alertmanager reads only since 0.26


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    for prefix, rest in _CHANNEL_NAMES.items():
        allowed = [prefix + name for name in rest]
        for name in environment:
            if name.startswith(prefix) and name not in allowed:
                raise ValueError(f"{name} is not known; there are {', '.join(allowed)}")


def _needs(environment: Mapping[str, str], name: str, other: str) -> None:
    if environment.get(name) and not environment.get(other):
        raise ValueError(f"{name} is set but {other} is not: set both or neither")


def _url_or_file(environment: Mapping[str, str], name: str) -> tuple[str | None, str | None]:
    """An address that is set directly or stands in a file, and the name of the file."""
    url, file = environment.get(name), environment.get(f"{name}_FILE")
    if url and file:
        raise ValueError(f"{name} and {name}_FILE are both set: set one of them")
    if file:
        url = _url(f"{name}_FILE", _read(f"{name}_FILE", file))
    return _url(name, url) if url else None, file


def _read(name: str, file: str) -> str:
    try:
        text = read_text(file, named=True).strip()
    except OSError as error:
        raise ValueError(f"{name} is {file!r}, which cannot be read: {error}") from error
    if not text:
        raise ValueError(f"{name} is {file!r}, which is empty")
    return text


def _url(name: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or any(character.isspace() for character in text):
        raise ValueError(f"{name} must be an http:// or https:// address")  # not shown: it may be a secret
    return text


def _host_and_port(name: str, text: str) -> str:
    match = _HOST_AND_PORT.fullmatch(text)
    if not match or not 1 <= int(match[2]) <= 65535:
        raise ValueError(f"{name} is {text!r}; it must be host:port, such as smtp.example.com:587")
    return text


def _tls(text: str) -> bool:
    if text not in ("required", "off"):
        raise ValueError(f"HEAPWATCH_SMTP_TLS is {text!r}; it may be required or off")
    return text == "required"
