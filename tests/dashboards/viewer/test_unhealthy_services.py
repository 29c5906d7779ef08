"""What the pages say of services that the supervision finds unhealthy."""

from pathlib import Path

import pytest

from heapwatch_viewer.unhealthy_services import UNHEALTHY, unhealthy_services


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
    (tmp_path / UNHEALTHY).parent.mkdir()
    (tmp_path / UNHEALTHY).write_text(text)
    assert unhealthy_services({"HEAPWATCH_STATE": str(tmp_path)}) == said


def test_without_supervision_it_says_nothing(tmp_path: Path) -> None:
    assert unhealthy_services({"HEAPWATCH_STATE": str(tmp_path)}) == ""
    assert unhealthy_services({}) == ""
