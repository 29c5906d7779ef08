"""The commands for single parts of the stack: `heapwatch rules`, `dashboards`, `receiver` and `viewer`."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from heapwatch import data
from heapwatch.text.terminal import say

# Text in the shipped files that the user's own settings replace.
_TRAINERS = 'job="trainer"'
_DASHBOARDS = "{{ $externalLabels.heapwatch_dashboards }}"
_RUNBOOKS = "{{ or $externalLabels.heapwatch_runbooks `docs/runbooks` }}"


def add_parser(commands: Any) -> None:
    """Add the subcommands."""
    _add_rules(commands)
    _add_dashboards(commands)
    receiver = commands.add_parser(
        "receiver",
        help="run only the receiver",
        description="Receive Alertmanager's webhooks and request cleanups. Settings: HEAPWATCH_RECEIVER_*.",
    )
    receiver.add_argument("--config", type=Path, metavar="FILE", help="YAML settings")
    receiver.set_defaults(run=serve_receiver, extra="receiver")
    viewer = commands.add_parser(
        "viewer",
        help="run only the built-in viewer of the dashboards",
        description="Serve the dashboards. Settings: HEAPWATCH_BIND, HEAPWATCH_DASHBOARDS_PORT (3009),"
        " HEAPWATCH_PROMETHEUS_URL (http://127.0.0.1:9090).",
    )
    viewer.set_defaults(run=serve_viewer, extra="viewer")


def _add_rules(commands: Any) -> None:
    rules = commands.add_parser(
        "rules",
        help="write the alerting rules, for your own Prometheus",
        description="Write the files of rules into a folder.",
    )
    rules.add_argument("folder", type=Path, metavar="FOLDER")
    rules.add_argument("--job", metavar="NAME", help="job label of the trainers (trainer)")
    rules.add_argument(
        "--dashboards-url",
        type=_url,
        default="http://127.0.0.1:3009",
        metavar="URL",
        help="address of Grafana in the links of alerts (%(default)s)",
    )
    rules.add_argument(
        "--runbooks-url",
        type=_url,
        default="http://127.0.0.1:9095/runbooks",
        metavar="URL",
        help="address of the runbooks in the links of alerts (%(default)s)",
    )
    rules.set_defaults(run=write_rules)


def _add_dashboards(commands: Any) -> None:
    dashboards = commands.add_parser(
        "dashboards",
        help="write the dashboards, for your own Grafana",
        description="Write the dashboards into a folder.",
    )
    dashboards.add_argument("folder", type=Path, metavar="FOLDER")
    dashboards.set_defaults(run=write_dashboards)


def write_rules(arguments: argparse.Namespace) -> int:
    """Write the rules, with the user's own job and addresses."""
    texts = {}
    for file in data.path("prometheus", "rules").glob("*.yml"):
        text = file.read_text(encoding="utf-8")
        if arguments.job is not None:
            text = text.replace(_TRAINERS, f"job={json.dumps(arguments.job)}")
        text = text.replace(_DASHBOARDS, arguments.dashboards_url)
        texts[file.name] = text.replace(_RUNBOOKS, arguments.runbooks_url)
    return _write(arguments.folder, texts)


def write_dashboards(arguments: argparse.Namespace) -> int:
    """Write the dashboards."""
    boards = data.path("dashboards", "generated").glob("*.json")
    return _write(arguments.folder, {file.name: file.read_text(encoding="utf-8") for file in boards})


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no address such as https://grafana.example.com")
    return text.rstrip("/")


def _write(folder: Path, texts: dict[str, str]) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        say(f"error: {error.filename}: {error.strerror}", error=True)
        return 1
    say(f"{len(texts)} files in {folder}")
    return 0


def serve_receiver(arguments: argparse.Namespace) -> int:
    """Serve until stopped; 2 when it cannot serve as configured."""
    from heapwatch_receiver.__main__ import main

    return main(["--config", str(arguments.config)] if arguments.config else [])


def serve_viewer(_arguments: argparse.Namespace) -> int:
    """Serve until stopped; 1 when it cannot."""
    from heapwatch_viewer.app import serve
    from heapwatch_viewer.settings import Settings

    try:
        serve(Settings.from_environment())
    except ValueError as problem:
        say(f"heapwatch viewer: {problem}", error=True)
        return 1
    return 0
