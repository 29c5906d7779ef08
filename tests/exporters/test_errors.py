import errno

import pytest

from heapwatch.errors import reason


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(errno.ENOENT, "No such file or directory", "/x/y"), "/x/y: No such file or directory"),
        (OSError(errno.EADDRINUSE, "port 7777 is taken"), "port 7777 is taken"),
        (OSError("no reason"), "no reason"),
        (ValueError("port 70000 is not a port"), "port 70000 is not a port"),
    ],
)
def test_a_reason_has_its_file_and_no_number(error, text):
    assert reason(error) == text
