"""The names that the environment may have: a misspelt one must not pass for a default."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from heapwatch.stack.errors import StackError

PREFIX = "HEAPWATCH_"
RECEIVER_PREFIX = "HEAPWATCH_RECEIVER_"
# The stack's own, the trainers' library's and the viewer's; the receiver's are taken from its settings.
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
    """Raises StackError for the first `HEAPWATCH_*` name that nothing reads, with the nearest known name."""
    given = {name for name in environment if name.startswith(PREFIX)} - KNOWN
    given = {name for name in given if not name.startswith(RECEIVER_PREFIX + "TEST_")}
    if not given:
        return
    from heapwatch.receiver.settings import Settings  # needs pydantic: read only when a name is in question

    known = KNOWN | {RECEIVER_PREFIX + field.upper() for field in Settings.model_fields}
    for name in sorted(given - known):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0)
        raise StackError(f"nothing reads {name}; did you mean {near[0]}? (or unset it)")
