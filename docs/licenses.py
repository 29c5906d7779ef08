"""Writes docs/licenses.md: the licence of every package that `heapwatch[stack]` installs.

python -m docs.licenses [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from docs.generated import write_or_check
from heapwatch.text import markdown

PAGE = Path(__file__).with_name("licenses.md")
ROOTS = {"library": (), "stack": ("stack",)}
HEAD = """# Licences

Heapwatch has the MIT licence. The packages that it installs have these, by their own metadata
(`python -m docs.licenses` writes this page):

"""
TAIL = """
`heapwatch up` runs three programs that are not part of it, from their projects or from Debian:
Prometheus and Alertmanager (Apache-2.0) and Grafana (AGPL-3.0-only).
"""


def brought(package: str, extras: tuple[str, ...], seen: set[str]) -> Iterator[Distribution]:
    """The package and what it requires on this interpreter, each once."""
    try:
        found = distribution(package)
    except PackageNotFoundError:
        return
    name = found.name.lower().replace("_", "-")
    if name not in seen:
        seen.add(name)
        yield found
    for requirement in map(Requirement, found.requires or ()):
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            continue
        if requirement.extras or requirement.name.lower().replace("_", "-") not in seen:
            yield from brought(requirement.name, tuple(requirement.extras), seen)


def license_of(found: Distribution) -> str:
    """What the package says, in a few words."""
    metadata = found.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = [
        text.rpartition(" :: ")[2]
        for text in metadata.get_all("Classifier", [])
        if text.startswith("License :: OSI Approved :: ")
    ]
    if classifiers:
        return ", ".join(classifiers)
    text = str(metadata.get("License") or "").strip()
    return text if text and "\n" not in text and len(text) < 60 else "unknown"


def page() -> str:
    """The whole page."""
    seen = {"heapwatch"}
    packages: dict[tuple[str, str], list[str]] = {}
    for title, extras in ROOTS.items():
        for found in brought("heapwatch", extras, seen):
            packages.setdefault((license_of(found), title), []).append(found.name)
    rows = [
        (name, title, ", ".join(sorted(members, key=str.lower)))
        for (name, title), members in sorted(packages.items())
    ]
    return f"{HEAD}{markdown.table(('licence', 'installed with', 'packages'), rows)}\n{TAIL}"


if __name__ == "__main__":
    sys.exit(write_or_check("docs.licenses", {PAGE: page()}))
