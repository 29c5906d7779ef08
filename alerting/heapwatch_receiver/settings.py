"""The receiver's settings: one YAML file, environment overrides, everything validated."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from heapwatch import lost
from heapwatch.runtime.own_files import read_text

PREFIX = "HEAPWATCH_RECEIVER_"
# Variables of the whole stack, and the setting that each of them overrides.
SHARED_NAMES = {
    "HEAPWATCH_BIND": "bind",
    "HEAPWATCH_TOKEN_FILE": "token_file",
    "HEAPWATCH_PROMETHEUS_URL": "prometheus_url",
    "HEAPWATCH_ALERTMANAGER_URL": "alertmanager_url",
    "HEAPWATCH_RUNBOOKS_URL": "runbooks_url",
    "HEAPWATCH_TARGETS_DIR": "targets_dir",
}
# Variables that the command line reads, and the one that renders Alertmanager's configuration.
_ALSO_READ = {PREFIX + "CONFIG", PREFIX + "URL"}
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_PLACEHOLDERS = ("job", "instance")

LONGEST_DURATION = 30 * 86400.0
Seconds = Annotated[float, Field(gt=0, le=LONGEST_DURATION, allow_inf_nan=False)]
HttpUrl = Annotated[str, Field(pattern=r"^https?://[^/\s?#@]+(/[^\s?#]*)?$")]


class SettingsError(ValueError):
    """A setting is wrong; the message has one line for each wrong setting, with what is allowed."""


class Settings(BaseModel):
    """Every setting with its default. Durations are seconds, sizes bytes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bind: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 9095
    token_file: Path | None = None
    database: Path = Path(".heapwatch/data/receiver.sqlite3")
    prometheus_url: HttpUrl = "http://127.0.0.1:9090"
    prometheus_warm_up: Seconds = 120
    alertmanager_url: HttpUrl = "http://127.0.0.1:9093"
    runbooks_url: HttpUrl = "http://127.0.0.1:9095/runbooks"
    targets_dir: Path | None = None
    grafana_url: HttpUrl | None = None
    grafana_token_file: Path | None = None

    dry_run: bool = False
    stale_after: Seconds = 600
    regular_cooldown: Seconds = 600
    emergency_cooldown: Seconds = 600
    escalation_cooldown: Seconds = 3600
    actions_per_hour: Annotated[int, Field(ge=1)] = 20
    parallel_trainers: Annotated[int, Field(ge=1, le=256)] = 16
    escalation: Literal["nothing", "notify", "restart"] = "notify"
    restart_command: tuple[str, ...] = ()
    restart_timeout: Seconds = 120
    watchdog_alertname: str = "Watchdog"

    trainer_timeout: Seconds = 30
    trainer_deadline: Seconds = 300
    retry_pause: Seconds = 2
    check_after: Seconds = 45
    check_deadline: Seconds = 180
    helped_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.05

    retention_days: Annotated[float, Field(gt=0, le=3650)] = 90
    retention_rows: Annotated[int, Field(ge=1000)] = 500_000

    max_body_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 16 << 20

    @field_validator("restart_command")
    @classmethod
    def _known_placeholders(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        for argument in command:
            for name in _PLACEHOLDER.findall(argument):
                if name not in _PLACEHOLDERS:
                    raise ValueError(f"unknown placeholder {{{name}}}: allowed are {{job}} and {{instance}}")
        if command and _PLACEHOLDER.search(command[0]):
            raise ValueError("the program itself may not be a placeholder")
        return command

    @model_validator(mode="after")
    def _belong_together(self) -> Settings:
        if self.escalation == "restart" and not self.restart_command:
            raise ValueError(
                "escalation: restart needs restart_command, a list such as [docker, compose, restart, x]"
            )
        if (self.grafana_url is None) != (self.grafana_token_file is None):
            raise ValueError("grafana_url and grafana_token_file belong together: set both or neither")
        return self

    @property
    def silent_dir(self) -> Path:
        """The folder of trainers that registered over the network and stopped renewing."""
        return self.database.parent / lost.FOLDER

    @property
    def lost_dirs(self) -> list[Path]:
        """The folders of trainers that ended unexpectedly."""
        return [*([self.targets_dir / lost.FOLDER] if self.targets_dir else []), self.silent_dir]

    @property
    def ports(self) -> set[int]:
        """The ports of the stack's services, as far as the receiver knows them."""
        urls = (self.prometheus_url, self.alertmanager_url, self.runbooks_url, self.grafana_url)
        return {self.port, *(port for url in urls if url and (port := urlsplit(url).port))}

    def cooldown(self, action: str) -> float:
        """Seconds between two actions of this kind on one trainer."""
        cooldowns = {"regular": self.regular_cooldown, "emergency": self.emergency_cooldown}
        return cooldowns.get(action, self.escalation_cooldown)


def load(file: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the file, if any, overridden by the environment.

    Raises:
        SettingsError: the file cannot be read, a key is unknown, or a value is not allowed.

    """
    _refuse_unknown(environment)
    values = _read_file(file) if file else {}
    values |= {SHARED_NAMES[name]: value for name, value in environment.items() if name in SHARED_NAMES}
    for key in Settings.model_fields:
        text = environment.get(PREFIX + key.upper())
        if text is not None:
            values[key] = _value(PREFIX + key.upper(), text)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(_explain(error, file)) from None


def _value(name: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        raise SettingsError(f"{name} is {text[:80]!r}, which is not YAML") from None


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    known = {PREFIX + field.upper() for field in Settings.model_fields} | _ALSO_READ
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known and not name.startswith(PREFIX + "TEST_"):
            near = difflib.get_close_matches(name, known, n=1, cutoff=0)
            raise SettingsError(f"nothing reads {name}; did you mean {near[0]}?")


def token(settings: Settings, environment: Mapping[str, str] = os.environ) -> str:
    """The secret shared with callers and trainers.

    Raises:
        SettingsError: there is none; the receiver does not run without a token.

    """
    given = environment.get("HEAPWATCH_TOKEN", "").strip()
    if not given and settings.token_file is None:
        raise SettingsError(
            "no token: set HEAPWATCH_TOKEN_FILE (or token_file) to a file that holds one, mode 0600"
        )
    return given or secret(settings.token_file, "token_file")


def secret(file: Path | None, name: str) -> str:
    """The content of a secret's file, one line.

    Raises:
        SettingsError: it cannot be read, is empty, or holds other characters than printable ASCII.

    """
    if file is None:
        raise SettingsError(f"{name} is not set")
    try:
        text = read_text(file, named=True).strip()
    except OSError as error:
        raise SettingsError(f"{name}: cannot read {file}: {error.strerror or error}") from None
    if not text or not text.isascii() or not text.isprintable():
        raise SettingsError(f"{name}: {file} must hold one line of printable ASCII")
    return text


def _read_file(file: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(read_text(file, named=True))
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror or error}") from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise SettingsError(f"{file} is nested too deeply") from None
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise SettingsError(f"{file}: a mapping of settings is allowed, not {type(values).__name__}")
    return values


def _explain(error: ValidationError, file: Path | None) -> str:
    where = str(file) if file else "environment"
    lines = []
    for problem in error.errors(include_url=False):
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            lines.append(
                f"{where}: {key}: unknown setting; allowed are {', '.join(sorted(Settings.model_fields))}"
            )
        elif key:
            lines.append(f"{where}: {key}: {problem['input']!r} is not allowed: {problem['msg']}")
        else:
            lines.append(f"{where}: {problem['msg']}")
    return "\n".join(lines)
