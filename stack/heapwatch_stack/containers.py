"""The `configuration` container: it fills the volumes that the other containers read, before they start.

It is the only one that runs as root, because the files belong to different users. It has no network.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from heapwatch.runtime.own_files import read_text, replace
from heapwatch_stack import configuration
from heapwatch_stack.alertmanager import Channels, with_files
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Settings

# Inside the Compose network each service has its own name and the documented port.
ADDRESSES = {
    "prometheus": "prometheus:9090",
    "alertmanager": "alertmanager:9093",
    "receiver": "receiver:9095",
    "dashboards": "dashboards:3009",
}
NOBODY, GRAFANA = 65534, 472
READERS = {"token": NOBODY, "webhook-token": NOBODY, "grafana-admin-password": GRAFANA}
HANDED = Path("/run/heapwatch")
# In the folder of secrets: the user's channels as JSON, and the files of this machine that they name.
CHANNELS, NAMED_FILES = "notifications.json", "named-*"


def hand_over(people: Channels, secrets: Path) -> None:
    """Copy the channels, and the files that they name, to where the container reads them.

    Raises OSError for one that cannot be read.
    """
    for old in secrets.glob(NAMED_FILES):
        old.unlink()
    names: dict[str, str] = {}
    inside = with_files(people, lambda path: str(HANDED / names.setdefault(path, f"named-{len(names) + 1}")))
    for path, name in names.items():
        replace(secrets / name, read_text(Path(path).expanduser(), any_owner=True))
    replace(secrets / CHANNELS, json.dumps(inside))


def prepare(settings: Settings, etc: Path, source: Path, target: Path) -> None:
    """Write `etc` from shipped files; copy each secret from `source` to `target`, owned by its reader."""
    for name in READERS:
        if not (source / name).is_file():
            raise StackError(f"there is no {name}: start the stack with make up, which makes it")
    named = {path.name: NOBODY for folder in (source, target) for path in folder.glob(NAMED_FILES)}
    for name, reader in (READERS | named).items():
        copy = target / name
        copy.unlink(missing_ok=True)
        if (source / name).is_file():
            replace(copy, read_text(source / name, any_owner=True), 0o400)
            os.chown(copy, reader, reader)
    channels = (
        json.loads(read_text(source / CHANNELS, any_owner=True)) if (source / CHANNELS).is_file() else {}
    )
    configuration.write(settings, etc, ADDRESSES, target / "webhook-token", channels)
    os.chown(etc / "alertmanager.yml", NOBODY, NOBODY)
    os.chown(etc / "targets" / "trainer", NOBODY, NOBODY)


if __name__ == "__main__":
    try:
        prepare(Settings.from_environment(), Path("/etc/heapwatch"), Path("/heapwatch/secrets"), HANDED)
    except StackError as problem:
        sys.exit(f"error: {problem}")
