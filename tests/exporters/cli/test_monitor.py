import re
import signal
import socket
import threading

import pytest

TOKEN = {"HEAPWATCH_TOKEN": "correct-horse"}
SOON = ("--interval", "0.3")


def test_one_sample_of_a_healthy_trainer(trainer, run):
    code, printed, _ = run("monitor", "--count", 1, trainer.address)
    assert code == 0
    line, types, leaks = printed.splitlines()
    assert leaks.startswith("   too early to tell")
    assert re.fullmatch(r"\d\d:\d\d:\d\d: Memory=\d+\.\dMB, Bodies=186, Food=6, Step=\d+", line)
    assert types == "   Body types: Static=1, Dynamic=155, Agent=30, Unknown=0"
    code, printed, _ = run("monitor", "--count", 1, "127.0.0.1:1")
    assert code == 3
    assert ": UNKNOWN: http://127.0.0.1:1/performance_status does not answer" in printed


def test_leak_alerts_and_auto_cleanup_ends_it(trainer, heapwatch):
    command = heapwatch("monitor", *SOON, "--auto-cleanup", trainer.address, **TOKEN)
    command.until("Memory=")
    trainer.leak()
    assert command.until("CRITICAL: world_bodies") == "CRITICAL: world_bodies = 1247 (>= 1000)"
    command.until("Emergency cleanup completed in .* freed")
    command.until(r"Bodies: 1247 -> 186 \(-1061\)")
    command.until(r"Food: 67 -> 6 \(-61\)")
    command.until("ENDED: world_bodies is below its limit")
    assert command.end() == 0
    assert command.text.count("CRITICAL: world_bodies") == 1
    assert "correct-horse" not in command.text


def test_exit_code_is_the_state_of_the_last_sample(trainer, heapwatch):
    trainer.leak()
    for options, code in (((), 2), (("--bodies-warning", "500", "--bodies-critical", "2000"), 1)):
        command = heapwatch("monitor", *SOON, *options, trainer.address)
        command.until("Bodies=1247")
        command.until("Bodies=1247")
        assert command.end(signal.SIGTERM) == code


def test_port_that_is_no_trainers(run):
    with socket.create_server(("127.0.0.1", 0)) as silent:

        def answer():
            connection, _ = silent.accept()
            with connection:
                connection.sendall(b"SSH-2.0-nothing\r\n")

        threading.Thread(target=answer, daemon=True).start()
        code, printed, _ = run("monitor", "--count", 1, f"127.0.0.1:{silent.getsockname()[1]}")
    assert code == 3
    assert "does not answer" in printed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--interval", "0"], "above 0"),
        (["--interval", "1e12"], "'1e12' is not a number above 0 and below 1e+09"),
        (["--count", "0"], "1 or more"),
        (["not a trainer:x"], "allowed: host:port"),
        (["--auto-cleanup"], "HEAPWATCH_TOKEN"),
        (["--memory-warning", "5", "--memory-critical", "4"], "--memory-warning must be below"),
    ],
)
def test_wrong_command_line_is_one_clear_line(run, arguments, says):
    code, _, errors = run("monitor", *arguments)
    assert code == 64
    assert says in errors.splitlines()[-1]
