"""Single parts of the stack: `heapwatch rules`, `dashboards`, `receiver` and `viewer`."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from heapwatch import data
from heapwatch.errors import UsageError
from heapwatch.runtime.plain_text import say

# Parts of the shipped files that are replaced by the user's own.
_TRAINERS = 'job="trainer"'
_ANCHOR = re.compile(r"([:-] )([&*])([a-z]+)(?=[\s,}]|$)")
_DASHBOARDS = "{{ $externalLabels.heapwatch_dashboards }}"
_RUNBOOKS = "{{ or $externalLabels.heapwatch_runbooks `docs/runbooks` }}"
_MATCHERS = re.compile(r'\s*\w+\s*(=|!=|=~|!~)\s*"[^"\\\n]*"\s*(,\s*\w+\s*(=|!=|=~|!~)\s*"[^"\\\n]*"\s*)*')


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
        help="print or write the alerting rules, for your own Prometheus",
        description="Print the rules as one file, or write them into a folder.",
    )
    rules.add_argument("--output", type=Path, metavar="FOLDER", help="write the files there")
    trainers = rules.add_mutually_exclusive_group()
    trainers.add_argument("--job", metavar="NAME", help="job label of the trainers (trainer)")
    trainers.add_argument(
        "--selector",
        metavar="MATCHERS",
        help='label matchers of the trainers, such as \'job=~"train.+",team="rl"\'',
    )
    rules.add_argument(
        "--dashboards-url",
        default="http://127.0.0.1:3009",
        metavar="URL",
        help="address of Grafana in the links of alerts (%(default)s)",
    )
    rules.add_argument(
        "--runbooks-url",
        default="http://127.0.0.1:9095/runbooks",
        metavar="URL",
        help="address of the runbooks in the links of alerts (%(default)s)",
    )
    rules.set_defaults(run=print_rules)


def _add_dashboards(commands: Any) -> None:
    dashboards = commands.add_parser(
        "dashboards",
        help="print or write the dashboards, for your own Grafana",
        description="List the dashboards, print one, or write them into a folder.",
    )
    dashboards.add_argument("name", nargs="?", metavar="NAME", help="print this one, such as heapwatch-fleet")
    dashboards.add_argument("--output", type=Path, metavar="FOLDER", help="write the files there")
    dashboards.add_argument("--job", metavar="NAME", help="job that is selected at first (all)")
    dashboards.add_argument(
        "--datasource", metavar="UID", help="uid of your Prometheus data source (prometheus)"
    )
    dashboards.set_defaults(run=print_dashboards)


def print_rules(arguments: argparse.Namespace) -> int:
    """Print or write the rules."""
    job = None if arguments.job is None else f"job={json.dumps(arguments.job)}"
    texts = dict(_rules(arguments.selector or job, arguments.dashboards_url, arguments.runbooks_url))
    if arguments.output:
        return _write(arguments.output, texts)
    # One document with one list of groups.
    say("groups:")
    for name, text in texts.items():
        groups = text.partition("\ngroups:\n")[2].rstrip("\n")
        # an anchor may be defined only once in a document
        say(*_ANCHOR.sub(rf"\1\2{name.removesuffix('.yml')}_\3", groups).split("\n"))
    return 0


def _rules(selector: str | None, dashboards_url: str, runbooks_url: str) -> Iterator[tuple[str, str]]:
    """File name and text of each rule file, with the user's own selector and addresses."""
    if selector is not None and not _MATCHERS.fullmatch(selector):
        raise UsageError(f'--selector {selector!r}: write matchers such as job="trainer",team="rl"')
    for file in sorted(data.path("prometheus", "rules").glob("*.yml")):
        text = file.read_text(encoding="utf-8")
        if selector:
            text = text.replace(_TRAINERS, selector)
        text = text.replace(_DASHBOARDS, _url("--dashboards-url", dashboards_url))
        yield file.name, text.replace(_RUNBOOKS, _url("--runbooks-url", runbooks_url))


def print_dashboards(arguments: argparse.Namespace) -> int:
    """List, print or write the dashboards."""
    boards = {file.stem: file for file in sorted(data.path("dashboards", "generated").glob("*.json"))}
    if arguments.name is not None and arguments.name not in boards:
        raise UsageError(f"there is no dashboard {arguments.name!r}; there are {', '.join(boards)}")
    chosen = {arguments.name: boards[arguments.name]} if arguments.name else boards
    texts = {file.name: _dashboard(file, arguments.job, arguments.datasource) for file in chosen.values()}
    if arguments.output:
        return _write(arguments.output, texts)
    if arguments.name:
        say(*texts.popitem()[1].splitlines())
        return 0
    for name, text in texts.items():
        say(f"{name.removesuffix('.json'):<22} {json.loads(text)['title']}")
    return 0


def _dashboard(file: Path, job: str | None, datasource: str | None) -> str:
    """The dashboard's JSON, its variables set to the user's own job and data source."""
    board = json.loads(file.read_text(encoding="utf-8"))
    for variable in board["templating"]["list"]:
        if job and variable["name"] == "job":
            variable["current"] = {"selected": True, "text": [job], "value": [job]}
        if datasource and variable["type"] == "datasource":
            variable["current"] = {"selected": True, "text": datasource, "value": datasource}
    return json.dumps(board, indent=2, sort_keys=True) + "\n"


def _url(option: str, text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", text):
        raise UsageError(f"{option} {text!r}: write an address such as https://grafana.example.com")
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
