import gzip
import json
import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from heapwatch.recording.file import EARLIER_RUNS, NoRecording, Recorder, read_recording
from heapwatch.recording.points import Point
from tests.support.runs import filled, generations

RUN = generations(
    4, environments=16, evaluation=7e9, buffers=lambda generation: filled(generation * 1e9, 9e9)
)


@pytest.fixture(params=["run.jsonl", "run.jsonl.gz"])
def path(request, tmp_path):
    return tmp_path / request.param


def write(path, points=RUN.points, **options):
    recorder = Recorder(path, {"trainer": "erl_trading"}, **options)
    for point in points:
        recorder.take(point)
    return recorder


def test_what_is_recorded_is_read_back_also_while_it_is_written(path):
    recorder = write(path)
    assert read_recording(path) == RUN
    recorder.close()
    assert read_recording(path) == RUN


def test_a_half_written_last_line_is_left_out_and_named(tmp_path):
    path = tmp_path / "run.jsonl"
    write(path).close()
    path.write_bytes(path.read_bytes()[:-20])
    run = read_recording(path)
    assert run.points == RUN.points[:-1]


@pytest.mark.parametrize("cut", [1, 5, 9, 40, 200])
def test_a_compressed_file_cut_off_anywhere_is_read_up_to_there(tmp_path, cut):
    path = tmp_path / "run.jsonl.gz"
    write(path).close()
    with gzip.open(path, "rt") as lines:
        assert json.loads(next(lines)) == {"heapwatch": 1, "trainer": "erl_trading"}
    path.write_bytes(path.read_bytes()[:-cut])
    points = read_recording(path).points
    assert points == RUN.points[: len(points)]
    assert len(points) >= len(RUN.points) - cut / 10


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x1f\x8b", b"\x1f\x8bgarbage", b"hello\n", b"\xff\n", b"[1, 2]\n", b'{"time": 1}\n',
        b'{"time": 1, "event": "phase", "resident_bytes": 1, "colour": "blue"}\n',
    ],
)  # fmt: skip
def test_a_file_that_is_no_record_is_one_clear_line(tmp_path, content):
    path = tmp_path / "run"
    path.write_bytes(content)
    with pytest.raises(NoRecording, match=f"^{path} (is not|holds no|cannot be)") as raised:
        read_recording(path)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_or_of_another_format_is_one_clear_line(tmp_path):
    with pytest.raises(NoRecording, match="cannot be read: No such file"):
        read_recording(tmp_path / "absent")
    later = tmp_path / "later"
    later.write_text('{"heapwatch": 2}\n')
    with pytest.raises(NoRecording, match="format 2, this heapwatch reads 1"):
        read_recording(later)


def test_earlier_runs_are_kept_but_not_for_ever(path):
    for start in range(EARLIER_RUNS + 3):
        write(path, [Point(float(start), "start", 1.0)]).close()
    starts = [read_recording(path.with_name(f"{path.name}.{n}")).points[0].time for n in range(1, 6)]
    assert starts == [6, 5, 4, 3, 2]
    assert read_recording(path).points[0].time == 7
    assert len(list(path.parent.iterdir())) == EARLIER_RUNS + 1


def test_a_full_disk_ends_the_record_and_nothing_else(tmp_path):
    recorder = write(tmp_path / "run.jsonl")
    recorder._file.close()
    recorder._file = open("/dev/full", "wb")  # noqa: SIM115
    late = replace(RUN.points[-1], time=1e6)
    with pytest.raises(OSError, match="No space left"):
        recorder.take(late)
    recorder.take(late)
    recorder.close()
    assert read_recording(recorder.path) == RUN


def test_a_killed_trainer_leaves_what_it_had_recorded(path):
    """Killed outright, between a phase and whatever would have come."""
    trainer = """
        import os, signal, sys, time
        from pathlib import Path
        import heapwatch
        from heapwatch.recording.file import NoRecording, read_explanation, read_recording
        watch = heapwatch.start("erl", port=0, record=sys.argv[1])
        for generation in range(3):
            with watch.phase("evaluate"):
                watch.step()
            watch.progress("generation")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                if read_recording(Path(sys.argv[1])).points[-1].progress == {"generation": 3}:
                    break
            except (NoRecording, IndexError):
                pass
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(trainer), path], timeout=60, check=False, env=os.environ
    )
    assert process.returncode == -9
    run = read_recording(path)
    assert run.points[0].event == "start"
    assert {point.event for point in run.points} == {"start", "phase", "cycle"}
    assert run.trainer == "erl"
    assert run.points[-1].progress == {"generation": 3}
