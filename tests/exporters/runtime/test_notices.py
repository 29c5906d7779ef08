"""What a program that set up logging, or did not, gets to see."""

import subprocess
import sys

import pytest

SAY = """
log = logging.getLogger("heapwatch")
log.info("a notice")
log.warning("a warning")
"""
START = "import logging\nfrom heapwatch.runtime.notices import show_notices\n"


@pytest.mark.parametrize(
    ("setup", "seen"),
    [
        ("show_notices()", ["heapwatch: a notice", "heapwatch: a warning"]),
        ("show_notices(); show_notices()", ["heapwatch: a notice", "heapwatch: a warning"]),
        ("show_notices(); logging.basicConfig()", ["WARNING:heapwatch:a warning"]),
        ("logging.basicConfig(); show_notices()", ["WARNING:heapwatch:a warning"]),
        (
            "show_notices(); logging.basicConfig(level='INFO')",
            ["INFO:heapwatch:a notice", "WARNING:heapwatch:a warning"],
        ),
        *(
            (setup, ["INFO:heapwatch:a notice", "WARNING:heapwatch:a warning"])
            for setup in (
                "show_notices(); logging.basicConfig(); logging.getLogger('heapwatch').setLevel('INFO')",
                "logging.basicConfig(); logging.getLogger('heapwatch').setLevel('INFO'); show_notices()",
            )
        ),
        ("logging.getLogger('heapwatch').setLevel('ERROR'); show_notices()", []),
        ("show_notices(); logging.getLogger('heapwatch').setLevel('WARNING')", ["heapwatch: a warning"]),
    ],
)
def test_lines_appear_once_and_only_where_nobody_decided_otherwise(setup, seen):
    done = subprocess.run(
        [sys.executable, "-c", f"{START}{setup}{SAY}"], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines() == seen
    assert done.stdout == ""
