from __future__ import annotations

import re

import pytest

from heapwatch_receiver.settings import Settings as ReceiverSettings
from heapwatch_stack.environment import KNOWN, refuse_unknown
from heapwatch_stack.errors import StackError
from tests.support.repository import REPOSITORY, SOURCES


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("HEAPWATCH_RECEIVER_DRYRUN", "HEAPWATCH_RECEIVER_DRY_RUN"),
        ("HEAPWATCH_PROMETEUS_PORT", "HEAPWATCH_PROMETHEUS_PORT"),
        ("HEAPWATCH_SLACK_URLS", "HEAPWATCH_SLACK_URL"),
    ],
)
def test_a_misspelt_name_is_told_with_the_nearest_known_one(misspelt: str, meant: str) -> None:
    with pytest.raises(StackError, match=f"nothing reads {misspelt}; did you mean {meant}"):
        refuse_unknown({misspelt: "true", "HOME": "/"})


def test_known_names_of_stack_and_receiver_pass() -> None:
    refuse_unknown({"HEAPWATCH_STATE": "/x", "HEAPWATCH_RECEIVER_DRY_RUN": "true", "PATH": "/bin"})


def test_every_name_that_the_package_reads_is_known() -> None:
    receiver = {f"HEAPWATCH_RECEIVER_{field.upper()}" for field in ReceiverSettings.model_fields}
    files = [file for folder in SOURCES for file in (REPOSITORY / folder).rglob("*.py")]
    read = {
        name
        for file in files
        for name in re.findall(r'"(HEAPWATCH_[A-Z_]*[A-Z])"', file.read_text(encoding="utf-8"))
        if "_TEST_" not in name
    }
    assert len(read) > 30
    assert read - KNOWN - receiver == set()
