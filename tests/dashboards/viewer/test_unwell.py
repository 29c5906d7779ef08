"""What the pages say of services that the supervision finds unwell."""

from pathlib import Path

import pytest

from heapwatch_viewer.unwell import UNWELL, unwell


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ""),
        (
            "alertmanager: not answering\n",
            "alertmanager: not answering. Alerts may be lost: heapwatch status",
        ),
        ("a: x\nb: \x1b[2Jy\n", "a: x; b: \\x1b[2Jy. Alerts may be lost: heapwatch status"),
    ],
)
def test_one_line_says_it(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / UNWELL).parent.mkdir()
    (tmp_path / UNWELL).write_text(text)
    assert unwell({"HEAPWATCH_STATE": str(tmp_path)}) == said


def test_without_supervision_it_says_nothing(tmp_path: Path) -> None:
    assert unwell({"HEAPWATCH_STATE": str(tmp_path)}) == ""
    assert unwell({}) == ""
