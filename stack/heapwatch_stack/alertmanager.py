"""Renders alerting/alertmanager.yml with the address of the receiver and the channels of the user.

HEAPWATCH_NOTIFICATIONS_FILE names a YAML file with the `slack_configs`, `email_configs`, `webhook_configs` or
any other `..._configs` of one Alertmanager receiver, in Alertmanager's own words. Where such a channel has no
text of its own it gets that of alerting/templates. A key such as `api_url_file` names the file of a secret,
which Alertmanager itself reads; a relative path begins at the folder of the YAML file. What is written there
directly becomes part of the rendered text: write that text to a file of mode 0600.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from heapwatch.runtime.own_files import read_text
from heapwatch_stack.errors import StackError

NOTIFICATIONS = "HEAPWATCH_NOTIFICATIONS_FILE"
PEOPLE = "people"
_TITLE = '{{ template "heapwatch.title" . }}'
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "slack_configs": {
        "send_resolved": True,
        "title": '{{ template "heapwatch.slack.title" . }}',
        "title_link": "{{ (index .Alerts 0).Annotations.dashboard_url }}",
        "text": '{{ template "heapwatch.slack" . }}',
    },
    "email_configs": {
        "send_resolved": True,
        "headers": {"Subject": _TITLE},
        "html": '{{ template "heapwatch.email" . }}',
    },
    "discord_configs": {"title": _TITLE},
    "opsgenie_configs": {"message": _TITLE},
    "pagerduty_configs": {"description": _TITLE},
    "pushover_configs": {"title": _TITLE},
}

Channels = Mapping[str, list[dict[str, Any]]]


def render(source: Path, receiver: str, token_file: Path, channels: Channels) -> str:
    """Alertmanager's configuration: `source` with the receiver's address, its token and the channels."""
    configuration = yaml.safe_load(source.read_text(encoding="utf-8"))
    receivers = {one["name"]: one for one in configuration["receivers"]}
    for name in ("cleanup", "heartbeat"):
        for webhook in receivers[name]["webhook_configs"]:
            webhook["url"] = f"{receiver}/alerts"
            webhook["http_config"]["authorization"]["credentials_file"] = str(token_file)
    receivers[PEOPLE].update(channels)
    text = yaml.safe_dump(configuration, sort_keys=False, width=120)
    return (
        f"# Rendered from {source.name}: change that file, or {NOTIFICATIONS}, instead of this one.\n{text}"
    )


def channels(environment: Mapping[str, str]) -> Channels:
    """The channels of HEAPWATCH_NOTIFICATIONS_FILE, with absolute paths of secrets; none if it is not set.

    Raises:
        StackError: it cannot be read, nor a file that it names, or it is no such file; one line, no secret.

    """
    name = environment.get(NOTIFICATIONS)
    if not name:
        return {}
    file = Path(name).expanduser().absolute()
    try:
        document = yaml.safe_load(read_text(file, any_owner=True)) or {}
    except OSError as error:
        raise StackError(f"{NOTIFICATIONS} is {name!r}, which cannot be read: {error}") from error
    except yaml.MarkedYAMLError as error:  # whose text quotes the line
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise StackError(f"{NOTIFICATIONS}: {file} is no YAML{line}: {error.problem}") from None
    if not isinstance(document, dict) or not all(_are_channels(*pair) for pair in document.items()):
        raise StackError(f"{NOTIFICATIONS}: {file} may only have lists of mappings such as slack_configs")
    whole = {
        kind: [{**_DEFAULTS.get(kind, {}), **one} for one in configurations]
        for kind, configurations in document.items()
    }
    return dict(with_files(whole, lambda path: str(_secret(file.parent / Path(path).expanduser()))))


def _are_channels(kind: Any, configurations: Any) -> bool:
    return (
        str(kind).endswith("_configs")
        and isinstance(configurations, list)
        and all(isinstance(one, dict) for one in configurations)
    )


def with_files(value: Any, place: Callable[[str], str]) -> Any:
    """A copy of channels in which `place` has replaced the path of each `..._file`."""
    if isinstance(value, list):
        return [with_files(one, place) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: place(inner)
        if str(key).endswith("_file") and isinstance(inner, str)
        else with_files(inner, place)
        for key, inner in value.items()
    }


def _secret(file: Path) -> Path:
    try:
        read_text(file, any_owner=True)
    except OSError as error:
        raise StackError(f"{NOTIFICATIONS} names a file that cannot be read: {error}") from error
    return file


def hide(message: str, channels: Channels) -> str:
    """What Alertmanager says of its configuration, without the channels' values: one may be a secret."""
    for value in sorted(_texts(channels), key=len, reverse=True):
        message = message.replace(value, "…")
    return message


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) > 3:
        yield value
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _texts(inner)
