"""The services of the native stack with their commands and environments."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from heapwatch import data
from heapwatch_stack.binaries import Binaries, Grafana
from heapwatch_stack.configuration import fingerprint
from heapwatch_stack.settings import TRAINER, Endpoint, Settings

# Old samples are deleted by age or by size, whichever limit is reached first.
RETENTION_TIME = "30d"
RETENTION_SIZE = "5GB"
# Prometheus collects its garbage half as often as by default: less CPU time, more memory.
GARBAGE = {"GOGC": "200"}
# By default Prometheus allows pages of any site to read its answers; this expression matches no site.
NO_OTHER_ORIGIN = "null-origin"
HANDED_ON = ("HEAPWATCH_ALLOWED_HOSTS", "HEAPWATCH_RECORD")


@dataclass(frozen=True)
class Service:
    """A process under the supervisor, which restarts it if this has changed.

    Attributes:
        reloads: it reads its files again at SIGHUP.

    """

    endpoint: Endpoint
    command: tuple[str, ...]
    environment: Mapping[str, str]
    reloads: bool = False

    @property
    def name(self) -> str:
        """The service's name, which is also the supervisor's."""
        return self.endpoint.name


def services(settings: Settings, binaries: Binaries, grafana: Grafana | None) -> list[Service]:
    """The services in the order of their start; without Grafana the viewer replaces it."""
    endpoints = settings.endpoints()
    return [
        _prometheus(settings, binaries, endpoints["prometheus"]),
        _alertmanager(settings, binaries, endpoints["alertmanager"]),
        _python(settings, endpoints["receiver"], "heapwatch_receiver", _package("heapwatch_receiver")),
        _grafana(settings, endpoints["dashboards"], grafana)
        if grafana
        else _python(settings, endpoints["dashboards"], "heapwatch_viewer", _package("heapwatch_viewer")),
        *(
            [_python(settings, endpoints[TRAINER], "examples.walker", settings.checkout / "examples")]
            if settings.checkout
            else []
        ),
    ]


def _prometheus(settings: Settings, binaries: Binaries, endpoint: Endpoint) -> Service:
    command = [
        *_guarded(settings, endpoint),
        str(binaries.prometheus.path),
        f"--config.file={settings.etc / 'prometheus.yml'}",
        f"--storage.tsdb.path={settings.state / 'data' / 'prometheus'}",
        f"--storage.tsdb.retention.time={RETENTION_TIME}",
        f"--storage.tsdb.retention.size={RETENTION_SIZE}",
        f"--web.cors.origin={NO_OTHER_ORIGIN}",
    ]
    if binaries.web_assets:
        command.append(f"--web.local-assets={binaries.web_assets}/")
    return Service(endpoint, tuple(command), GARBAGE | environment(settings), reloads=True)


def _alertmanager(settings: Settings, binaries: Binaries, endpoint: Endpoint) -> Service:
    command = (
        *_guarded(settings, endpoint),
        str(binaries.alertmanager.path),
        f"--config.file={settings.etc / 'alertmanager.yml'}",
        f"--storage.path={settings.state / 'data' / 'alertmanager'}",
        "--cluster.listen-address=",  # one instance: no gossip port
    )
    return Service(endpoint, command, environment(settings), reloads=True)


def _guarded(settings: Settings, endpoint: Endpoint) -> tuple[str, ...]:
    """The command of the guard in front of a program that accepts requests of any web page."""
    return (sys.executable, "-m", "heapwatch_stack.guard", settings.bind, str(endpoint.port))


def _grafana(settings: Settings, endpoint: Endpoint, grafana: Grafana) -> Service:
    generated = data.path("dashboards", "generated")
    own = {
        "GF_SERVER_HTTP_ADDR": settings.bind,
        "GF_SERVER_HTTP_PORT": str(endpoint.port),
        "GF_PATHS_DATA": str(settings.state / "data" / "grafana"),
        "GF_PATHS_LOGS": str(settings.logs / "grafana"),
        "GF_PATHS_PROVISIONING": str(data.path("dashboards", "grafana", "provisioning")),
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH": str(generated / "heapwatch-fleet.json"),
        "GF_PATHS_DASHBOARDS": str(generated),  # which the provisioning reads
        "GF_SECURITY_ADMIN_PASSWORD": f"$__file{{{settings.grafana_password_file}}}",
        "GF_AUTH_ANONYMOUS_ENABLED": "true",
        "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer",
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
        "GF_PLUGINS_PREINSTALL_DISABLED": "true",  # nothing is fetched at start
        "GF_PATHS_PLUGINS": str(settings.state / "data" / "grafana" / "plugins"),
    }
    command = (*grafana.command, f"--homepath={grafana.home}")
    return Service(endpoint, command, environment(settings) | own)


def _python(settings: Settings, endpoint: Endpoint, module: str, *sources: Path) -> Service:
    prefix = endpoint.port_variable.removesuffix("PORT")
    own = {name: value for name, value in settings.environment.items() if name.startswith(prefix)}
    # Nothing reads it: after a change of the source or the token it makes the supervisor restart the service.
    revision = {"REVISION": fingerprint(_package("heapwatch"), *sources, settings.token_file)}
    return Service(endpoint, (sys.executable, "-m", module), environment(settings) | own | revision)


def _package(name: str) -> Path:
    return Path(str(files(name)))


def environment(settings: Settings) -> dict[str, str]:
    """The environment of every service, independent of the calling shell but for HANDED_ON."""
    checkout = {"HEAPWATCH_CHECKOUT": str(settings.checkout)} if settings.checkout else {}
    return {
        **checkout,
        **{name: value for name, value in settings.environment.items() if name in HANDED_ON},
        "HEAPWATCH_STATE": str(settings.state),
        "HEAPWATCH_BIND": settings.bind,
        "HEAPWATCH_PROFILE": settings.profile,
        "HEAPWATCH_TOKEN_FILE": str(settings.token_file),
        "HEAPWATCH_TARGETS_DIR": str(settings.targets),
        **{one.port_variable: str(one.port) for one in settings.services.values()},
        "HEAPWATCH_PROMETHEUS_URL": settings.url("prometheus"),
        "HEAPWATCH_ALERTMANAGER_URL": settings.url("alertmanager"),
        "HEAPWATCH_RECEIVER_RUNBOOKS_URL": settings.runbooks_url,
        "HEAPWATCH_RECEIVER_DATABASE": str(settings.state / "data" / "receiver.sqlite3"),
        "PYTHONUNBUFFERED": "1",
    }
