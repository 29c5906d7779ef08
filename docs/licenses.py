"""Writes docs/licenses.md: under which licence everything stands that `heapwatch[stack]` brings.

python -m docs.licenses [--check]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

PAGE = Path(__file__).with_name("licenses.md")
ROOTS = {"library": (), "stack": ("stack",)}
HEAD = """# Licences

Heapwatch is under the MIT licence. What its installation brings, as each package says of itself
(`python -m docs.licenses` writes this page):

| package | licence | with |
|---|---|---|
"""
TAIL = """
`heapwatch up` runs three programs that it does not contain, as their projects or Debian ship them:
Prometheus and Alertmanager (Apache-2.0) and Grafana (AGPL-3.0-only).
"""
NAME = re.compile(r"^([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?")


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
    for requirement in found.requires or ():
        text, _, marker = requirement.partition(";")
        wanted = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
        if (wanted and wanted[1] not in extras) or re.search(r"win32|darwin|python_version\s*<", marker):
            continue
        match = NAME.match(text.strip())
        required = match[1].lower().replace("_", "-") if match else ""
        inner = tuple((match[2] or "").replace(" ", "").split(",")) if match and match[2] else ()
        if required and (required not in seen or inner):
            yield from brought(required, inner, seen)


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
    rows = []
    for title, extras in ROOTS.items():
        for found in brought("heapwatch", extras, seen):
            rows.append(f"| {found.name} | {license_of(found)} | {title} |")
    return HEAD + "\n".join(sorted(rows, key=str.lower)) + "\n" + TAIL


def main() -> int:
    """Write the page; with `--check` say whether it is what would be written."""
    parser = argparse.ArgumentParser(prog="python -m docs.licenses")
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        if PAGE.read_text(encoding="utf-8") != page():
            print(f"{PAGE} is not what `python -m docs.licenses` writes", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
