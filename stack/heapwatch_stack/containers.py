"""The `configuration` container: it fills the volumes that the other containers read, before they start.

It is the only one that runs as root, because the files belong to different users. It has no network.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from heapwatch import data
from heapwatch.runtime.own_files import read_text, replace
from heapwatch_stack import configuration
from heapwatch_stack.errors import StackError

# Inside the Compose network each service has its own name and the documented port.
ADDRESSES = {
    "prometheus": "prometheus:9090",
    "alertmanager": "alertmanager:9093",
    "receiver": "receiver:9095",
    "dashboards": "dashboards:3009",
}
NOBODY, GRAFANA = 65534, 472
READERS = {"token": NOBODY, "webhook-token": NOBODY, "grafana-admin-password": GRAFANA}
# Files that settings of the host name, and their names inside the containers.
HANDED = Path("/run/heapwatch")
NAMED_FILES = {
    "HEAPWATCH_SLACK_URL_FILE": "slack-url",
    "HEAPWATCH_SMTP_PASSWORD_FILE": "smtp-password",
    "HEAPWATCH_WEBHOOK_URL_FILE": "webhook-url",
    "HEAPWATCH_RECEIVER_GRAFANA_TOKEN_FILE": "grafana-token",
}


def prepare(data: Path, etc: Path, given: Path, handed: Path) -> None:
    """Write `etc` from shipped files; copy each secret from `given` to `handed`, owned by its reader."""
    for name in READERS:
        if not (given / name).is_file():
            raise StackError(f"there is no {name}: start the stack with make up, which makes it")
    for name, reader in (READERS | dict.fromkeys(NAMED_FILES.values(), NOBODY)).items():
        copy = handed / name
        copy.unlink(missing_ok=True)
        if (given / name).is_file():
            replace(copy, read_text(given / name, named=True), 0o400)
            os.chown(copy, reader, reader)
    configuration.write(data, etc, environment(os.environ, handed), ADDRESSES)
    os.chown(etc / "alertmanager.yml", NOBODY, NOBODY)
    os.chown(etc / "targets" / "trainer", NOBODY, NOBODY)


def environment(given: Mapping[str, str], handed: Path = HANDED) -> dict[str, str]:
    """The settings for Alertmanager's configuration in the Compose network."""
    return {
        **given,
        "HEAPWATCH_RECEIVER_URL": f"http://{ADDRESSES['receiver']}",
        "HEAPWATCH_ALERTMANAGER_TOKEN_FILE": str(handed / "webhook-token"),
    }


if __name__ == "__main__":
    try:
        prepare(data.folder(), Path("/etc/heapwatch"), Path("/heapwatch/secrets"), HANDED)
    except StackError as problem:
        sys.exit(f"error: {problem}")
