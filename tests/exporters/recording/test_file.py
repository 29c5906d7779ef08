import gzip
import json
import os
import subprocess
import sys
import textwrap
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heapwatch.recording.file import (
    EARLIER_RUNS,
    NoRecording,
    Recorder,
    Thinning,
    read_explanation,
    read_recording,
)
from heapwatch.recording.points import Point, from_json, to_json
from tests.exporters.report.runs import filled, generations

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
    assert run.notes == (f"line {len(RUN.points) + 1} is half-written and left out",)


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


def test_lines_that_are_no_points_are_left_out_and_named(tmp_path):
    path = tmp_path / "run.jsonl"
    write(path).close()
    wrong = {
        2: "not json",
        3: "[1, 2]",
        4: '{"time": 1, "event": "phase"}',
        5: '{"time": 1, "event": "party", "resident_bytes": 1}',
        6: '{"time": "now", "event": "phase", "resident_bytes": 1}',
        7: '{"time": 1, "event": "phase", "resident_bytes": -1}',
        8: '{"time": 1, "event": "phase", "resident_bytes": NaN}',
        9: '{"time": 1, "event": "phase", "resident_bytes": 1, "objects": {"A": "many"}}',
        10: '{"time": 1, "event": "phase", "resident_bytes": 1, "buffers": {"replay": 3}}',
        11: '{"time": 1, "event": "phase", "resident_bytes": 1, "colour": "blue"}',
        12: "[" * 100_000,
        13: "\x00\x80",
    }
    lines = path.read_text().splitlines()
    for number, line in wrong.items():
        lines.insert(number - 1, line)
    path.write_text("\n".join(lines) + "\n")
    run = read_recording(path)
    assert run.points == RUN.points
    assert len(run.notes) == 11
    for number, note in zip(wrong, run.notes, strict=False):
        assert f"line {number} " in note or number > 11
    assert run.notes[2] == "line 4 is left out: its resident_bytes is not a number"
    assert run.notes[7] == "line 9 is left out: its objects 'A' is not a number"
    assert run.notes[-1] == "and 2 more like these"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "$"),
        (b"\x1f\x8b", ""),
        (b"\x1f\x8bgarbage", ""),
        (b"hello\n", ""),
        (b"\xff" * 3_000_000, ""),
        (b"\xb1\xff\n", "; line 1 is not text and left out$"),
    ],
)
def test_a_file_without_a_run_is_one_clear_line(tmp_path, content, why):
    path = tmp_path / "run"
    path.write_bytes(content)
    with pytest.raises(NoRecording, match=f"^{path} holds no recorded run{why}"):
        read_recording(path)


def test_a_file_that_is_not_there_or_of_another_format_is_one_clear_line(tmp_path):
    with pytest.raises(NoRecording, match="cannot be read: No such file"):
        read_recording(tmp_path / "absent")
    later = tmp_path / "later"
    later.write_text('{"heapwatch": 2}\n')
    with pytest.raises(NoRecording, match="format 2, this heapwatch reads 1"):
        read_recording(later)
    later.write_text('{"heapwatch": "' + r"x\u001b" * 10_000 + '"}\n')
    with pytest.raises(NoRecording) as caught:
        read_recording(later)
    assert len(str(caught.value)) < 500


def test_the_file_stays_below_its_bound_and_keeps_whole_generations(path):
    """Also the largest objects that were found last, whatever becomes of their cycle."""
    long = generations(3001, evaluation=1e6).points
    found = replace(long[-1], event="sample", phase="", large=(("ndarray", 2e7),))
    write(path, [*long, found], max_bytes=40_000).close()
    assert path.stat().st_size <= 41_000
    *points, last = read_recording(path).points
    assert last.large == found.large
    assert points[0] == long[0]
    kept = {point.cycle("generation") for point in points[1:]}
    stride = min(kept)
    assert kept == set(range(stride, 3002, stride))
    assert 3001 not in kept
    assert all(
        sum(point.cycle("generation") == generation for point in points[1:]) == 4 for generation in kept
    )
    assert not list(path.parent.glob("*thinner*"))


def test_samples_of_a_trainer_without_cycles_are_thinned_evenly(path):
    samples = [Point(float(15 * n), "sample", 1e9 + n, progress={"step": n}) for n in range(4000)]
    write(path, samples, max_bytes=20_000).close()
    times = [point.time for point in read_recording(path).points]
    assert path.stat().st_size <= 21_000
    assert len({later - earlier for earlier, later in pairwise(times)}) == 1
    assert times[-1] > 15 * 3500


def test_thinning_keeps_every_second_cycle_of_the_largest_unit_and_always_the_start():
    def kept(thinning, event="cycle", **progress):
        return thinning.keeps(thinning.index(Point(0.0, event, 1.0, progress=progress)))

    thinning = Thinning()
    assert all(kept(thinning, epoch=number) for number in range(1, 6))
    thinning.double()
    assert [kept(thinning, epoch=number) for number in (1, 2, 3, 4)] == [False, True, False, True]
    assert [kept(thinning, epoch=7, generation=number) for number in (2, 3)] == [True, False]
    thinning.double()
    assert [number for number in range(9, 17) if kept(thinning, epoch=number)] == [12, 16]
    assert kept(thinning, "start", epoch=3)


def test_earlier_runs_are_kept_but_not_for_ever(path):
    for start in range(EARLIER_RUNS + 3):
        write(path, [Point(float(start), "start", 1.0)]).close()
    starts = [read_recording(path.with_name(f"{path.name}.{n}")).points[0].time for n in range(1, 6)]
    assert starts == [6, 5, 4, 3, 2]
    assert read_recording(path).points[0].time == 7
    assert len(list(path.parent.iterdir())) == EARLIER_RUNS + 1


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.thinner"])
def test_no_link_that_somebody_put_there_is_written_through(tmp_path, name):
    target = tmp_path / "target"
    (tmp_path / name).symlink_to(target)
    with suppress(FileExistsError):
        recorder = Recorder(tmp_path / "run.jsonl", {"trainer": "erl_trading"}, max_bytes=2000)
        for number in range(100):
            recorder.take(Point(float(number), "cycle", 1e9, progress={"epoch": number}))
        recorder.close()
    assert not target.exists()


def test_a_full_disk_ends_the_record_and_nothing_else(tmp_path):
    recorder = write(tmp_path / "run.jsonl")
    recorder._file.close()
    recorder._file = open("/dev/full", "wb")  # noqa: SIM115
    with pytest.raises(OSError, match="No space left"):
        recorder.take(RUN.points[0])
    recorder.take(RUN.points[0])
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


names = st.text(min_size=1, max_size=20)
sizes = st.floats(0, 1e15)


@given(
    st.builds(
        Point,
        time=sizes,
        event=st.sampled_from(["start", "phase", "cycle", "sample"]),
        resident_bytes=sizes,
        phase=st.text(max_size=20),
        delta_bytes=st.none() | st.floats(-1e15, 1e15),
        worker_bytes=st.none() | sizes,
        objects=st.dictionaries(names, sizes, max_size=3),
        items=st.dictionaries(names, sizes, max_size=3),
        bounds=st.dictionaries(names, sizes, max_size=3),
        sizes=st.dictionaries(names, sizes, max_size=3),
    )
)
def test_any_point_survives_json(point):
    assert from_json(json.loads(json.dumps(to_json(point)))) == point


fields = st.sampled_from(["time", "event", "resident_bytes", "objects", "buffers", "phase", "large", "x"])


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda parts: st.lists(parts, max_size=3) | st.dictionaries(fields, parts),
    )
)
def test_any_json_is_a_point_or_a_value_error(document):
    with suppress(ValueError):
        assert isinstance(from_json(document), Point)


def packed(path, line, count):
    path.write_bytes(gzip.compress(line * count))
    return path


SAMPLE = b'{"time":1,"event":"sample","resident_bytes":1}\n'
CYCLE = SAMPLE.replace(b"{", b'{"progress":{"epoch":1},', 1).replace(b"sample", b"cycle")


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (SAMPLE, "it has very many samples: some cycles are left out"),
        (SAMPLE.replace(b"sample", b"start"), "too many samples of one cycle; the rest is left out"),
        (CYCLE, "too many samples of one cycle; the rest is left out"),
    ],
)
def test_a_file_of_very_many_samples_is_thinned_or_cut(tmp_path, monkeypatch, line, note):
    monkeypatch.setattr("heapwatch.recording.file._MOST_POINTS", 1000)
    run = read_recording(packed(tmp_path / "bomb.gz", line, 20_000))
    assert 100 < len(run.points) <= 1001
    assert note in run.notes


def test_a_file_of_long_samples_is_thinned_by_its_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("heapwatch.recording.file._MOST_KEPT_BYTES", 100_000)
    run = read_recording(packed(tmp_path / "bomb.gz", SAMPLE, 20_000))
    assert 500 < len(run.points) <= 100_000 / len(SAMPLE) + 1


@pytest.mark.parametrize("line", [b"0" * 1000, SAMPLE, b"\0" * 1000])
def test_a_file_that_unpacks_to_very_much_is_read_in_part(tmp_path, monkeypatch, line):
    monkeypatch.setattr("heapwatch.recording.file._MOST_BYTES", 100_000)
    path = packed(tmp_path / "bomb.gz", line, 20_000)
    try:
        notes = "; ".join(read_recording(path).notes)
    except NoRecording as error:
        notes = str(error)
    assert "the rest is left out" in notes
    assert len(notes) < 1000


def test_a_file_of_lines_that_cannot_be_read_is_given_up(tmp_path):
    path = packed(tmp_path / "bomb.gz", b"x\n", 100_000)
    with pytest.raises(NoRecording, match="1,000 lines cannot be read; the rest of the file is left out"):
        read_recording(path)
    with pytest.raises(NoRecording, match="holds no explanation"):
        read_explanation(path)


@pytest.mark.parametrize(
    "text",
    [
        '{"time":1,"event":"sample","resident_bytes":1' + "0" * 400 + "}",
        '{"time":1,"event":"sample","resident_bytes":1' + "0" * 5000 + "}",
        '{"time":NaN,"event":"sample","resident_bytes":1}',
        "[" * 100_000,
        '{"time":1,"event":' + "[" * 900 + "]" * 900 + "}",
        '{"' + "x" * 100_000 + '":1}',
    ],
)
def test_a_line_that_is_too_much_for_the_parser_is_one_short_note(tmp_path, text):
    path = tmp_path / "run.jsonl"
    path.write_bytes(SAMPLE + text.encode() + b"\n")
    run = read_recording(path)
    assert len(run.points) == 1
    assert [len(note) <= 200 for note in run.notes] == [True]
    with pytest.raises(NoRecording, match="holds no explanation"):
        read_explanation(path)
