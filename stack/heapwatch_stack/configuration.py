"""Writes the configuration of the services, and the file by which trainers find the stack."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path

from heapwatch import stacks
from heapwatch.http.guards import find_token
from heapwatch.http.signing import webhook_token
from heapwatch.runtime.own_files import make_private, read_text, replace
from heapwatch_stack import state_folder
from heapwatch_stack.alertmanager import Channels, channels, render
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import TRAINER, Settings

TOKEN_BYTES = 32
# In prometheus.yml.
SHIPPED_LINKS = (
    "heapwatch_dashboards: http://127.0.0.1:3009",
    "heapwatch_runbooks: http://127.0.0.1:9095/runbooks",
)
WATCHED = (".py", ".yml", ".yaml", ".json", ".tmpl", ".css", ".js")


def lay_out(settings: Settings) -> None:
    """Create folders, secrets, links and rendered files."""
    state_folder.make(settings.state)
    for name in ("etc", "data", "logs", "run", "secrets", "etc/targets"):
        make_private(settings.state / name)
    make_private(settings.targets)
    make_secrets(settings)
    link(settings.etc / "targets" / "trainer", settings.targets)
    services = (one for one in settings.endpoints().values() if one.name != TRAINER)
    addresses = {one.name: f"{settings.host}:{one.port}" for one in services}
    write(settings, settings.etc, addresses, settings.webhook_token_file, channels(settings.environment))


def write(
    settings: Settings, etc: Path, addresses: Mapping[str, str], webhook_token: Path, people: Channels
) -> None:
    """Fill `etc`: links to shipped files, prometheus.yml, alertmanager.yml, the stack's targets.

    Args:
        settings: where the shipped files are, and where the links of alerts lead.
        etc: the folder.
        addresses: `host:port` of each service, as Prometheus and Alertmanager reach it.
        webhook_token: the file of Alertmanager's token for the receiver.
        people: the channels of the notifications.

    """
    data = settings.data
    for name, place in (("rules", "prometheus"), ("templates", "alerting")):
        link(etc / name, (data / place / name).resolve())
    text = (data / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
    for shipped, url in zip(SHIPPED_LINKS, (settings.dashboards_url, settings.runbooks_url), strict=True):
        text = text.replace(shipped, f"{shipped.partition(' ')[0]} {url}")
    replace(etc / "prometheus.yml", text, 0o644)
    receiver = f"http://{addresses['receiver']}"
    rendered = render(data / "alerting" / "alertmanager.yml", receiver, webhook_token, people)
    # The address of a chat channel is a secret.
    replace(etc / "alertmanager.yml", rendered)
    stack = [{"targets": [address], "labels": {"service": name}} for name, address in addresses.items()]
    alertmanager = [{"targets": [addresses["alertmanager"]], "labels": {}}]
    for name, targets in (("stack", stack), ("alertmanager", alertmanager)):
        (etc / "targets" / name).mkdir(mode=0o755, parents=True, exist_ok=True)
        replace(etc / "targets" / name / "stack.json", json.dumps(targets, indent=2) + "\n", 0o644)


def make_secrets(settings: Settings) -> None:
    """Write the token, the token derived from it, and Grafana's password to files of mode 0600.

    A token in the environment becomes the stack's token, so that all services and the trainers of this shell
    use the same one. StackError if it is no valid token.
    """
    own = settings.token_file
    make_private(own.parent)
    named = settings.environment.get("HEAPWATCH_TOKEN_FILE") or own
    if settings.environment.get("HEAPWATCH_TOKEN") or Path(named).expanduser().absolute() != own:
        try:
            token = find_token(None, settings.environment)
        except (OSError, ValueError) as error:
            raise StackError(f"HEAPWATCH_TOKEN or HEAPWATCH_TOKEN_FILE cannot be used: {error}") from error
        replace(own, f"{token}\n")
    for file in (own, settings.grafana_password_file):
        if not file.is_file():
            replace(file, secrets.token_urlsafe(TOKEN_BYTES) + "\n")
        file.chmod(0o600)
    secret = read_text(own, private=True).strip()
    replace(settings.webhook_token_file, webhook_token(secret) + "\n")


def link(place: Path, target: Path) -> None:
    """Make a symbolic link to `target`, unless it is there."""
    if place.is_symlink() and place.readlink() == target:
        return
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def fingerprint(*paths: Path) -> str:
    """A short digest of these files, and of the source and configuration files below these folders.

    It depends on the paths, too. A path that does not exist adds nothing.

    Returns:
        16 hexadecimal digits.

    Raises:
        OSError: a file cannot be read.

    """
    digest = hashlib.sha256()
    for path in paths:
        # resolve: the state folder contains links to folders, which rglob does not follow
        for file in _files(path.resolve()):
            digest.update(f"{file}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in WATCHED and file.is_file())


def announce(settings: Settings, answers_at: str, targets: Path | None) -> None:
    """Write the file by which this user's trainers find the running stack.

    `answers_at`: see `heapwatch.stacks.Stack`. `targets`: the folder for its Prometheus; None if that cannot
    reach this machine's trainers. Raises OSError if the state folder cannot be written.
    """
    stack = stacks.Stack(
        state=str(settings.state),
        targets="" if targets is None else str(targets),
        token_file=str(settings.token_file),
        answers_at=answers_at,
    )
    stacks.announce(stack)
