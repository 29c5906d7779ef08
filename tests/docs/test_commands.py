"""Every command of README and docs is one that the programs accept; those that are quick are run."""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import tomllib

import examples.common.command
import heapwatch
from heapwatch.cli import main
from heapwatch_receiver.app import create_app
from heapwatch_receiver.settings import Settings
from tests.support.commands import ROOT, Command, blocks, inline

BLOCKS = [pytest.param(one, id=f"{one.page}: {one.text}"[:80]) for one in dict.fromkeys(blocks())]
INLINE = [pytest.param(one, id=one.text[:80]) for one in {one.text: one for one in inline()}.values()]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PLACEHOLDERS = {"PID": "1", "N": "1", "SUBCOMMAND": "run", "[ARG...]": ""}


class Accepted(Exception):
    """The command line was read without an error; what it would start is not started."""


def of(commands: list, program: str) -> list:
    return [one for one in commands if one.values[0].text.split()[0] == program]


def test_every_block_has_commands_that_are_checked_here() -> None:
    programs = {one.values[0].words[0] for one in BLOCKS}
    assert programs == {"pip", "git", "cd", "make", "heapwatch", "python", "curl"}


@pytest.mark.parametrize("command", of(BLOCKS, "heapwatch"))
def test_heapwatch_accepts_it(command: Command) -> None:
    assert main._parser().parse_args(command.words[1:]).run


@pytest.mark.parametrize("command", of(INLINE, "heapwatch"))
def test_heapwatch_has_the_verb_and_its_options(command: Command, capsys: pytest.CaptureFixture) -> None:
    verb, *words = [PLACEHOLDERS.get(word, word) for word in re.sub(r"[\[\]]", "", command.text).split()[1:]]
    with pytest.raises(SystemExit) as ended:
        main.main([verb, "--help"])
    assert ended.value.code == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    script = next((index for index, word in enumerate(words) if word.endswith(".py")), len(words))
    assert {word for word in words[:script] if word.startswith("--")} <= options


@pytest.mark.parametrize("command", [*of(BLOCKS, "make"), *of(INLINE, "make")])
def test_make_has_the_target_and_its_variables(command: Command) -> None:
    words = re.sub(r"[\[\]]|\"[^\"]*\"|#.*", "", command.text).split()[1:]
    settings = {word.partition("=")[0] for word in words if "=" in word}
    assert [word for word in words if "=" not in word and f"\n{word}: " not in MAKEFILE] == []
    assert [name for name in settings if not re.search(rf"\b{name}\b", MAKEFILE)] == []


EXAMPLES = [one for one in of(BLOCKS + INLINE, "python") if " -m examples." in one.values[0].text]


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_example_accepts_it(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parse = argparse.ArgumentParser.parse_args

    def accept(parser: argparse.ArgumentParser) -> argparse.Namespace:
        chosen = parse(parser)
        if hasattr(chosen, "leak"):
            return chosen  # the switches are read next, and written
        raise Accepted

    def write(*_: object) -> None:
        raise Accepted

    words = command.text.partition(" #")[0].split()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEAPWATCH_STATE", str(tmp_path))
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", accept)
    monkeypatch.setattr(examples.common.command, "write", write)
    monkeypatch.setattr(sys, "argv", words[2:])
    with pytest.raises((Accepted, FileNotFoundError, SystemExit)) as ended:
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)
    if isinstance(ended.value, FileNotFoundError):  # what the reader records first
        assert words[-1] in str(ended.value)
    if isinstance(ended.value, SystemExit):
        assert ended.value.code == 0


@pytest.mark.parametrize("command", of(BLOCKS + INLINE, "python"))
def test_the_module_is_there_and_explains_its_arguments(command: Command) -> None:
    module = command.text.split()[2]
    spec = importlib.util.find_spec(module)
    assert spec is not None
    if spec.submodule_search_locations is not None:
        assert importlib.util.find_spec(f"{module}.__main__") is not None
    if module == "docs.systems.pictures":  # it needs a recording and a browser
        assert f"{module} {command.words[3]} " in Path(spec.origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("command", of(INLINE, "promtool"))
def test_promtool_is_given_files_that_are_there(command: Command) -> None:
    for pattern in command.text.split()[3:]:
        assert list(ROOT.glob(pattern)) or pattern.startswith(".heapwatch/etc/")


@pytest.mark.parametrize("command", of(BLOCKS, "pip"))
def test_pip_installs_an_extra_that_there_is(command: Command) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, _, extra = command.words[2].rstrip("]").partition("[")
    assert name in (project["name"], ".")  # or the clone
    assert not extra or extra in project["optional-dependencies"]


WRITING = [one for one in BLOCKS if re.match("heapwatch (rules|dashboards) ", one.values[0].text)]


@pytest.mark.parametrize("command", WRITING)
def test_it_writes_files(command: Command, tmp_path: Path) -> None:
    line = command.text.replace("heapwatch ", f"{sys.executable} -m heapwatch ", 1)
    subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True, timeout=60)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    if "--job" in command.text:
        assert any("rl-trainers" in path.read_text() for path in written)


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[heapwatch.Watch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEAPWATCH_TARGETS_DIR", str(tmp_path_factory.mktemp("targets")))
        with heapwatch.start("docs", port=0, token="of-the-reader") as watch:
            yield watch


@pytest.mark.parametrize("command", of(BLOCKS, "curl"))
def test_the_trainer_answers_curl(command: Command, watch: heapwatch.Watch) -> None:
    words = [word.replace("$(cat token)", "of-the-reader") for word in command.words[1:]]
    options = argparse.ArgumentParser()
    options.add_argument("-X", dest="method", default="GET")
    options.add_argument("-H", dest="headers", action="append", default=[])
    options.add_argument("-d", dest="body")
    options.add_argument("url")
    given = options.parse_args(words)
    body = json.dumps(json.loads(given.body) | {"timeout_seconds": 0})  # nothing steps here
    connection = http.client.HTTPConnection("127.0.0.1", watch.port, timeout=20)
    connection.request(
        given.method, urlsplit(given.url).path, body, dict(header.split(": ") for header in given.headers)
    )
    assert connection.getresponse().status == 202


@pytest.mark.parametrize("command", of(INLINE, "curl"))
def test_curl_asks_for_a_page_that_is_served(
    command: Command, watch: heapwatch.Watch, tmp_path: Path
) -> None:
    method = "POST" if "-X POST" in command.text else "GET"
    path = re.search(r"(?:URL|\.\.\.|:\d+|:port)(/\w+)", command.text)[1]
    if ":9095" in command.text:
        receiver = create_app(Settings(database=tmp_path / "receiver.sqlite"), "token")
        assert path in {route.path for route in receiver.routes}
        return
    connection = http.client.HTTPConnection("127.0.0.1", watch.port, timeout=20)
    connection.request(method, path)
    assert connection.getresponse().status == (401 if method == "POST" else 200)
