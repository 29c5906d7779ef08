"""Archives of the official releases' layout, and a server that hands them out well or badly."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from heapwatch_stack import binaries, releases
from heapwatch_stack.releases import Release, architecture


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
def serving(files: Mapping[str, bytes], most: int = 1 << 30) -> Iterator[tuple[str, list]]:
    """The address of a server and the paths that it was asked for; an answer hangs after `most` bytes."""
    asked: list[str] = []
    closing = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            content = files.get(self.path.lstrip("/"))
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:most])
            self.wfile.flush()
            if len(content) > most:
                closing.wait(30)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
