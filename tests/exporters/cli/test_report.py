from dataclasses import replace

import pytest

from heapwatch.recording.file import Recorder
from tests.support.runs import generations


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


def test_a_leak_is_reported_and_is_the_exit_code(leaking, run):
    code, printed, errors = run("report", leaking)
    assert (code, errors) == (2, "")
    assert "- TradingEnvironment count: 2 -> 98 (increasing by 16 each generation)" in printed


def test_the_end_of_a_log_is_added(leaking, tmp_path, run):
    log = tmp_path / "train.log"
    log.write_bytes(b"".join(b"line %d \x1b[2J\xff\n" % number for number in range(20_000)))
    code, printed, _ = run("report", leaking, "--log", log)
    assert code == 2
    _, _, end = printed.partition("LAST 50 LINES OF THE LOG\n")
    assert [line.split()[1] for line in end.splitlines() if line.startswith("line ")] == [
        str(number) for number in range(19_950, 20_000)
    ]
    assert "\x1b" not in end
    code, _, errors = run("report", leaking, "--log", tmp_path / "none")
    assert code == 64
    assert "none cannot be read: No such file or directory" in errors


def test_a_record_of_one_sample_is_too_short_to_judge(recording, run):
    first = replace(generations(6), points=generations(6).points[:1])
    too_short = "heapwatch: too short to judge: the record has one sample\n"
    assert run("report", recording(first)) == (3, "", too_short)


def test_a_run_whose_trainer_gave_no_verdict_is_too_early(recording, run):
    code, printed, _ = run("report", recording(generations(10)))
    assert code == 0
    assert "too early: memory is at its level of the start." in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--large", "nan"], "not a number of megabytes above 0"),
        (["run", "--rows", "1"], "0 for all, or 2 and more"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments, message, run):
    code, _, errors = run("report", *arguments)
    assert code == 64
    assert message in errors


def test_what_is_not_there_is_one_line(tmp_path, run):
    code, _, errors = run("report", tmp_path / "absent")
    assert code == 3
    assert errors.endswith("absent cannot be read: No such file or directory\n")
