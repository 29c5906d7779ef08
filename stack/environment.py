"""The known environment variables: a misspelt one must not be ignored."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from heapwatch.stack.errors import StackError

PREFIX = "HEAPWATCH_"
RECEIVER_PREFIX = "HEAPWATCH_RECEIVER_"
# Variables of the stack, the library and the viewer; those of the receiver come from its settings.
KNOWN = frozenset(
    PREFIX + name
    for name in (
        "ALERTMANAGER_PORT",
        "ALERTMANAGER_TOKEN_FILE",
        "ALERTMANAGER_URL",
        "ALLOWED_HOSTS",
        "BIND",
        "CACHE",
        "CHECKOUT",
        "DASHBOARDS_DIR",
        "DASHBOARDS_PORT",
        "DASHBOARDS_URL",
        "DOWNLOADS",
        "EMAIL_FROM",
        "EMAIL_TO",
        "PROFILE",
        "PROMETHEUS_PORT",
        "PROMETHEUS_URL",
        "RECEIVER_CONFIG",
        "RECEIVER_PORT",
        "RECEIVER_URL",
        "RECORD",
        "REGISTER",
        "REVISION",
        "RUNBOOKS_URL",
        "SECRETS",
        "SLACK_CHANNEL",
        "SLACK_URL",
        "SLACK_URL_FILE",
        "SMTP_HOST",
        "SMTP_PASSWORD_FILE",
        "SMTP_TLS",
        "SMTP_USER",
        "STACK",
        "STALL_MS",
        "STATE",
        "TARGETS_DIR",
        "TOKEN",
        "TOKEN_FILE",
        "TORCH_INDEX",
        "TRACE",
        "TRAINER_PORT",
        "WEBHOOK_URL",
        "WEBHOOK_URL_FILE",
    )
)


def refuse_unknown(environment: Mapping[str, str]) -> None:
    """Raise StackError for the first unknown `HEAPWATCH_*` name, with the nearest known name."""
    given = {name for name in environment if name.startswith(PREFIX)} - KNOWN
    given = {name for name in given if not name.startswith(RECEIVER_PREFIX + "TEST_")}
    if not given:
        return
    from heapwatch.receiver.settings import Settings  # needs pydantic: imported only for a receiver's name

    known = KNOWN | {RECEIVER_PREFIX + field.upper() for field in Settings.model_fields}
    for name in sorted(given - known):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0)
        raise StackError(f"nothing reads {name}; did you mean {near[0]}? (or unset it)")
