import json
import os

import pytest

from heapwatch_viewer.model import Library

BOARD = {"uid": "one", "title": "One", "panels": []}


def write(folder, text, name="one.json"):
    path = folder / name
    path.write_text(text)
    stamp = path.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(stamp, stamp))  # as if a second had passed


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (json.dumps(BOARD)[:20], "one.json is no JSON"),
        ("{}", "one.json is not a dashboard: 'uid' is missing"),
        ("[]", "one.json is not a dashboard"),
    ],
)
def test_a_faulty_file_is_named(tmp_path, text, wrong):
    write(tmp_path, text)
    with pytest.raises(ValueError, match=wrong):
        Library(tmp_path)


def test_an_empty_folder_says_how_to_fill_it(tmp_path):
    with pytest.raises(ValueError, match="make generate"):
        Library(tmp_path)


def test_a_changed_file_is_read_again(tmp_path):
    write(tmp_path, json.dumps(BOARD))
    library = Library(tmp_path)
    write(tmp_path, json.dumps({**BOARD, "title": "Two"}))
    library.refresh()
    assert library.boards["one"].title == "Two"


def test_a_file_that_breaks_leaves_what_was_shown_and_is_said(tmp_path):
    write(tmp_path, json.dumps(BOARD))
    library = Library(tmp_path)
    (tmp_path / "two.json").write_text("{")
    library.refresh()
    assert list(library.boards) == ["one"]
    assert "two.json is no JSON" in library.problem
    (tmp_path / "two.json").unlink()
    library.refresh()
    assert library.problem == ""
