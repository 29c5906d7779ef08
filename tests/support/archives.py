"""Archives of the official releases' layout, and a server that hands them out well or badly."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from heapwatch_stack import binaries, releases
from heapwatch_stack.releases import Release, architecture
from tests.support import http_server
from tests.support.http_server import Request


def archive(release: Release, contents: Mapping[str, bytes], top: str = "") -> bytes:
    """A gzipped tar with one top folder, as every official release has it."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as file:
        for name, content in contents.items():
            member = tarfile.TarInfo(f"{top or release.folder}/{name}")
            member.size, member.mode = len(content), 0o755
            file.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def pinned(release: Release, content: bytes, address: str) -> Release:
    """The release as it would be if this were its archive and its server."""
    name = release.address.rpartition("/")[2]
    digest = hashlib.sha256(content).hexdigest()
    return dataclasses.replace(release, sha256={architecture(): digest}, address=f"{address}/{name}")


def pinned_archives(
    monkeypatch: pytest.MonkeyPatch,
    programs: Mapping[str, Mapping[str, bytes]],
    address: str,
    top: str = "{folder}",
) -> dict[str, bytes]:
    """Archives of these programs by file name, pinned as if they were the official ones; PATH has none."""
    files = {}
    for name, contents in programs.items():
        release: Release = getattr(releases, name)
        content = archive(release, contents, top.format(folder=release.folder, **vars(release)))
        monkeypatch.setattr(binaries, name, pinned(release, content, address))
        files[release.url.rpartition("/")[2]] = content
    monkeypatch.setattr(binaries, "RELEASES", (binaries.PROMETHEUS, binaries.ALERTMANAGER))
    monkeypatch.setattr(binaries, "_on_path", lambda name: None)
    return files


@contextmanager
def serving(files: Mapping[str, bytes], most: int | None = None) -> Iterator[tuple[str, list[str]]]:
    """The address of a server and the paths that it was asked for; an answer hangs after `most` bytes."""
    asked: list[str] = []

    def respond(request: Request) -> tuple[int, bytes]:
        asked.append(request.path)
        content = files.get(request.path.lstrip("/"))
        return (404, b"") if content is None else (200, content)

    with http_server.serving(respond, most=most) as server:
        yield server.url, asked
