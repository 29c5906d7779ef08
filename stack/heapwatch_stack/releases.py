"""The official releases that are downloaded if PATH lacks a program: versions, addresses, SHA-256 checksums.

docker-compose.yml uses the same versions. Each checksum must be found in at least two independent public
places.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Release:
    """One archive for each architecture.

    Attributes:
        name: name of the project.
        version: version without a leading v.
        address: address of the archive, with the placeholders `{version}` and `{arch}`.
        sha256: checksum of the archive, by architecture.
        programs: path of each program below the archive's top folder, by name.

    """

    name: str
    version: str
    address: str
    sha256: Mapping[str, str]
    programs: Mapping[str, str]

    def url(self, mirror: str = "") -> str:
        """The address of this machine's archive; on a `mirror` it has the same file name."""
        official = self.address.format(version=self.version, arch=architecture())
        return f"{mirror.rstrip('/')}/{official.rpartition('/')[2]}" if mirror else official

    def host(self, mirror: str = "") -> str:
        """The host of that address."""
        return urlsplit(self.url(mirror)).netloc

    @property
    def folder(self) -> str:
        """The name of the unpacked archive in the cache."""
        return f"{self.name}-{self.version}.linux-{architecture()}"


def architecture() -> str:
    """The machine's architecture in the names of the releases."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


PROMETHEUS = Release(
    name="prometheus",
    version="3.13.2",
    address="https://github.com/prometheus/prometheus/releases/download/v{version}/prometheus-{version}.linux-{arch}.tar.gz",
    sha256={
        "amd64": "0e8c4d46101bd025ea8265e377d2caabc57f488fc1be1c367f37db69ea41be6f",
        "arm64": "7cecb17a6f41d59814e1a0581a1f81f79051ad5973d1ecf39e23a9f747d6572a",
    },
    programs={"prometheus": "prometheus", "promtool": "promtool"},
)
ALERTMANAGER = Release(
    name="alertmanager",
    version="0.34.0",
    address="https://github.com/prometheus/alertmanager/releases/download/v{version}/alertmanager-{version}.linux-{arch}.tar.gz",
    sha256={
        "amd64": "19c75a11d8c03dc4ade7abdbddfb3a8f28c9e7b000d0849cda0cd71dffd74a03",
        "arm64": "a96ef16598ddc58e84d28167b3352b30e3205698d76c56ef467e4504d7664da4",
    },
    programs={"alertmanager": "alertmanager", "amtool": "amtool"},
)
GRAFANA = Release(
    name="grafana",
    version="13.1.3",
    address="https://dl.grafana.com/grafana/release/{version}/grafana_{version}_31135815010_linux_{arch}.tar.gz",
    sha256={
        "amd64": "e0fd22aa63901ebc961ee64195da60eef8624a831683ca10b26c7b068082e92b",
        "arm64": "83eef49ccc6529da5ef3ffd2bc76dadfa66cca9a9684278bf858346cf2271b5d",
    },
    programs={"grafana": "bin/grafana"},
)
