import json

import pytest

from heapwatch_viewer.model import HOME, load

BOARD = {"uid": HOME, "title": "Home", "panels": []}


@pytest.mark.parametrize("text", [json.dumps(BOARD)[:20], "{}", "[]"])
def test_a_faulty_file_is_named(tmp_path, text):
    (tmp_path / "one.json").write_text(text)
    with pytest.raises(ValueError, match=r"one\.json is not a dashboard"):
        load(tmp_path)


def test_an_empty_folder_says_how_to_fill_it(tmp_path):
    with pytest.raises(ValueError, match="make generate"):
        load(tmp_path)
