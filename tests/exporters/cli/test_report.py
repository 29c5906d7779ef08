import json
import sys
from dataclasses import replace

import pytest

from heapwatch.cli.main import main
from heapwatch.recording.file import Recorder
from tests.exporters.report.runs import generations


@pytest.fixture
def recording(tmp_path):
    def record(run):
        path = tmp_path / "run.jsonl"
        recorder = Recorder(path, {"trainer": run.trainer})
        for point in run.points:
            recorder.take(point)
        recorder.close()
        return str(path)

    return record


@pytest.fixture
def leaking(recording):
    return recording(generations(6, environments=16, evaluation=7e9))


def test_a_leak_is_reported_and_is_the_exit_code(leaking, capsys):
    assert main(["report", leaking]) == 2
    assert "- TradingEnvironment count: 2 -> 98 (increasing by 16 each generation)" in capsys.readouterr().out


def test_the_end_of_a_log_is_added(leaking, tmp_path, capsys):
    log = tmp_path / "train.log"
    log.write_bytes(b"".join(b"line %d \x1b[2J\xff\n" % number for number in range(20_000)))
    assert main(["report", leaking, "--log", str(log)]) == 2
    _, _, end = capsys.readouterr().out.partition("LAST 50 LINES OF THE LOG\n")
    assert [line.split()[1] for line in end.splitlines() if line.startswith("line ")] == [
        str(number) for number in range(19_950, 20_000)
    ]
    assert "\x1b" not in end
    assert main(["report", leaking, "--log", str(tmp_path / "none")]) == 64
    assert "none does not exist" in capsys.readouterr().err


def test_a_record_of_one_sample_is_too_short_to_judge(recording, run):
    first = replace(generations(6), points=generations(6).points[:1])
    too_short = "heapwatch: too short to judge: the record has one sample\n"
    assert run("report", recording(first)) == (3, "", too_short)


def test_a_healthy_run_is_exit_code_0(recording, capsys):
    assert main(["report", recording(generations(10))]) == 0
    assert "healthy: memory is at its level of the start." in capsys.readouterr().out


def test_a_short_run_says_that_it_is_too_early(recording, capsys):
    assert main(["report", recording(generations(6))]) == 0
    said = capsys.readouterr().out
    assert "too early: memory is at its level of the start (watched for 18 of 24 minutes)." in said
    assert "healthy:" not in said


def test_a_terminal_gets_progress_and_a_file_does_not(leaking, capsys, monkeypatch):
    main(["report", leaking])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    main(["report", leaking])
    assert capsys.readouterr().err == (
        f"heapwatch: reading {leaking} ...\nheapwatch: analysing 25 samples ...\n"
    )


def test_json_has_every_number(leaking, capsys):
    assert main(["report", leaking, "--format", "json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["finding"]["phase"] == "evaluate_population"
    assert document["finding"]["growth_bytes_per_cycle"] == pytest.approx(7e9)
    assert document["objects"]["TradingEnvironment"]["change"] == 96
    assert document["objects"]["TradingEnvironment"]["verdict"] == "leak"
    assert len(document["trend"]) == 19


@pytest.mark.parametrize("chosen", ["text", "markdown", "html", "json"])
def test_a_file_is_replaced_at_once(leaking, tmp_path, chosen):
    output = tmp_path / "report"
    assert main(["report", leaking, "--format", chosen, "--output", str(output)]) == 2
    assert "TradingEnvironment" in output.read_text()
    assert not list(tmp_path.glob("*.tmp"))


def test_a_terminal_gets_colours_where_rich_is_installed(leaking, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["report", leaking]) == 2
    rich = capsys.readouterr().out
    assert "LEAK: increasing by 16 each generation" in rich
    assert "=====" not in rich
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert main(["report", leaking]) == 2
    assert "=====" in capsys.readouterr().out


def test_lines_left_out_are_named(leaking, capsys):
    with open(leaking, "a") as file:
        file.write('{"time": 1, "ev')
    assert main(["report", leaking]) == 2
    assert "line 27 is half-written and left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a recorded file or --prometheus URL"),
        (["run", "--prometheus", "127.0.0.1:1"], "and not both"),
        (["--prometheus", "ftp://here"], "is not an address"),
        (["run", "--since", "6"], "write a number and s, m, h or d"),
        (["run", "--since", "0h"], "write a number and s, m, h or d"),
        (["run", "--growth-limit", "-5"], "not a number of megabytes above 0"),
        (["run", "--large", "nan"], "not a number of megabytes above 0"),
        (["run", "--rows", "1"], "0 for all, or 2 and more"),
        (["run", "--rows", "²"], "0 for all, or 2 and more"),
        (["run", "--format", "pdf"], "invalid choice"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments, message, run):
    code, _, errors = run("report", *arguments)
    assert code == 64
    assert message in errors


def test_what_is_not_there_is_one_line_and_exit_code_3(tmp_path, run):
    code, _, errors = run("report", tmp_path / "absent")
    assert code == 3
    assert errors.endswith("absent cannot be read: No such file or directory\n")
    code, _, errors = run("report", "--prometheus", "127.0.0.1:1")
    assert (code, errors.count("\n")) == (3, 1)


def test_an_output_that_cannot_be_written_is_one_line(leaking, capsys):
    assert main(["report", leaking, "--output", "/proc/report"]) == 64
    assert "/proc/report cannot be written" in capsys.readouterr().err
