"""The receiver's settings: one YAML file, environment overrides, everything validated."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from heapwatch import lost
from heapwatch.runtime.environment import RECEIVER_PREFIX as PREFIX
from heapwatch.runtime.environment import unread
from heapwatch.runtime.own_files import read_text

# Variables of the whole stack, and the setting that each of them overrides.
SHARED_NAMES = {
    "HEAPWATCH_BIND": "bind",
    "HEAPWATCH_TOKEN_FILE": "token_file",
    "HEAPWATCH_PROMETHEUS_URL": "prometheus_url",
    "HEAPWATCH_ALERTMANAGER_URL": "alertmanager_url",
    "HEAPWATCH_TARGETS_DIR": "targets_dir",
}
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")

HttpUrl = Annotated[str, Field(pattern=r"^https?://[^/\s?#@]+(/[^\s?#]*)?$")]


class SettingsError(ValueError):
    """A setting is wrong; the message has one line for each wrong setting, with what is allowed."""


class Settings(BaseModel):
    """Every setting with its default; the cooldown is in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bind: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 9095
    token_file: Path | None = None
    database: Path = Path(".heapwatch/data/receiver.sqlite3")
    prometheus_url: HttpUrl = "http://127.0.0.1:9090"
    alertmanager_url: HttpUrl = "http://127.0.0.1:9093"
    runbooks_url: HttpUrl = "http://127.0.0.1:9095/runbooks"
    targets_dir: Path | None = None

    dry_run: bool = False
    cooldown: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 600
    actions_per_hour: Annotated[int, Field(ge=1)] = 20
    restart_command: tuple[str, ...] = ()

    @field_validator("restart_command")
    @classmethod
    def _known_placeholders(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        for argument in command:
            for name in _PLACEHOLDER.findall(argument):
                if name not in ("job", "instance"):
                    raise ValueError(f"unknown placeholder {{{name}}}: allowed are {{job}} and {{instance}}")
        if command and _PLACEHOLDER.search(command[0]):
            raise ValueError("the program itself may not be a placeholder")
        return command

    @property
    def escalation(self) -> Literal["notify", "restart"]:
        """What follows on cleanups that did not help."""
        return "restart" if self.restart_command else "notify"

    @property
    def lost_dirs(self) -> list[Path]:
        """The folders of trainers that ended unexpectedly."""
        return [self.targets_dir / lost.FOLDER] if self.targets_dir else []


def load(file: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the file, if any, overridden by the environment.

    Raises:
        SettingsError: the file cannot be read, a name is unknown, or a value is not allowed.

    """
    names = {PREFIX + key.upper(): key for key in Settings.model_fields}
    variables = {name: text for name, text in environment.items() if name.startswith(PREFIX)}
    if problem := unread(variables, names):
        raise SettingsError(problem)
    values = _mapping(file) if file else {}
    values |= {key: environment[name] for name, key in SHARED_NAMES.items() if name in environment}
    values |= {names[name]: _yaml(name, text) for name, text in variables.items() if name in names}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(_explain(error, str(file or "environment"))) from None


def token(settings: Settings, environment: Mapping[str, str] = os.environ) -> str:
    """The secret shared with callers and trainers.

    Raises:
        SettingsError: there is none, or its file cannot be read, is empty, or holds other characters than
            printable ASCII; the receiver does not run without a token.

    """
    value = environment.get("HEAPWATCH_TOKEN", "").strip()
    if value:
        return value
    file = settings.token_file
    if file is None:
        raise SettingsError(
            "no token: set HEAPWATCH_TOKEN_FILE (or token_file) to a file that holds one, mode 0600"
        )
    text = _read(file, "token_file").strip()
    if not text or not text.isascii() or not text.isprintable():
        raise SettingsError(f"token_file: {file} must hold one line of printable ASCII")
    return text


def _mapping(file: Path) -> dict[str, Any]:
    values = _yaml(str(file), _read(file, "settings"))
    if not isinstance(values or {}, dict):
        raise SettingsError(f"{file}: a mapping of settings is allowed, not {type(values).__name__}")
    return {str(key): value for key, value in (values or {}).items()}


def _read(file: Path, name: str) -> str:
    try:
        return read_text(file, any_owner=True)
    except OSError as error:
        raise SettingsError(f"{name}: cannot read {file}: {error.strerror or error}") from None


def _yaml(name: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(f"{name} is not YAML: {' '.join(str(error).split())}") from None


def _explain(error: ValidationError, where: str) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            (near,) = difflib.get_close_matches(key, Settings.model_fields, n=1, cutoff=0)
            lines.append(f"{where}: {key}: unknown setting; did you mean {near}?")
        else:
            lines.append(f"{where}: {key}: {problem['input']!r} is not allowed: {problem['msg']}")
    return "\n".join(lines)
