"""What lies under the names of files that trainers, the command line and the stack read."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.alerting.stage import Stage
from tests.attacks.programs import printed, real_trainer
from tests.attacks.record import Exchange, NotHere, attack
from tests.e2e import running
from tests.support.unreadable_files import UNREADABLE, others_file

PATIENCE = 60


@attack("a pipe, a link to /dev/zero, a gigabyte and deep JSON among the targets")
def among_the_targets(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("files")
    targets = folder / "targets"
    targets.mkdir()
    for number, (kind, make) in enumerate(UNREADABLE.items()):
        make(targets / f"{number}.json")
        exchange.sent(f"{number}.json: {kind}")
    with real_trainer(folder) as trainer:
        exchange.back("heapwatch.start() has returned; training goes on")
        assert trainer.makes_progress()
        _, listed = printed(folder, "ps")
        assert f"127.0.0.1:{trainer.port}" in listed, listed
        exchange.back(f"heapwatch ps: {listed.splitlines()[-1]}")


@attack("a pipe, an endless device, a gigabyte and a folder instead of a token")
def instead_of_a_token(stage: Stage, exchange: Exchange) -> None:
    script = "import heapwatch; print(heapwatch.start(port=0)._exporter.registration.token)"
    for kind in ("a pipe", "a link to /dev/zero", "a gigabyte", "a folder", "no UTF-8"):
        folder = stage.folder("files")
        UNREADABLE[kind](folder / "token")
        exchange.sent(f"HEAPWATCH_TOKEN_FILE: {kind}")
        named = {"HEAPWATCH_TOKEN_FILE": str(folder / "token"), "XDG_STATE_HOME": str(folder)}
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=os.environ | named,
            check=False,
        )
        assert done.stdout == "None\n", done.stderr
        exchange.back(done.stderr.splitlines()[0].replace(str(folder), "…"))


@attack("another user's targets, and old temporary files of other programs, during a sweep")
def what_is_not_ours(stage: Stage, exchange: Exchange) -> None:
    if os.geteuid() != 0:
        raise NotHere("only root makes files of another user")
    folder = stage.folder("files")
    targets = folder / "targets"
    targets.mkdir()
    others = [targets / name for name in (".mydata.tmp", ".cache-0123abcd.tmp", "by-hand.json")]
    for path in others:
        path.write_text("{}")
    others.append(targets / "others.json")
    others_file(others[-1], [{"targets": ["127.0.0.1:1"], "labels": {"__meta_heapwatch_owner": "{}"}}])
    for path in others:
        os.utime(path, (time.time() - 7200,) * 2)
    exchange.sent(f"two hours old: {', '.join(path.name for path in others)}")
    exchange.sent("others.json is another user's")
    with real_trainer(folder) as trainer:
        assert trainer.makes_progress()
        left = [path.name for path in others if path.exists()]
        exchange.back(f"a trainer has started and swept; left: {', '.join(left)}")
        assert len(left) == len(others)


@attack("a pipe and an endless device in the folders of the stack, and heapwatch up", quick=False)
def in_the_state_folder(stage: Stage, exchange: Exchange) -> None:
    stack = running.Stack(stage.folder("stack"))
    del stack.environment["HEAPWATCH_CHECKOUT"]
    stack.settings.targets.mkdir(parents=True)
    state = stack.settings.state
    for place, kind in (
        (stack.settings.targets / "x.json", "a pipe"),
        (state / "logs" / "supervisord.log", "a pipe"),
        (state / "run" / "lock", "a link to /dev/zero"),
    ):
        place.unlink(missing_ok=True)
        UNREADABLE[kind](place)
        exchange.sent(f"{place.parent.name}/{place.name}: {kind}; heapwatch up")
        done = stack.run("up", timeout=PATIENCE * 5)
        assert done.returncode == 1, done.stdout
        assert place.name in done.stderr, done.stderr
        exchange.back(done.stderr.strip().replace(str(stack.folder), "…"))
        place.unlink()
    assert stack.processes() == []
