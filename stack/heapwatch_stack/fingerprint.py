"""Detects changed files with a digest of names and contents."""

from __future__ import annotations

import hashlib
from pathlib import Path

WATCHED = (".py", ".yml", ".yaml", ".json", ".tmpl", ".css", ".js")


def fingerprint(*paths: Path) -> str:
    """A short digest of these files, and of the source and configuration files below these folders."""
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
