"""For every test: Prometheus and Alertmanager on PATH, fetched into the state folder where there are none."""

from __future__ import annotations

import os

import pytest

from heapwatch.stack.binaries import find
from heapwatch.stack.errors import StackError
from heapwatch.stack.settings import Settings


def pytest_configure(config: pytest.Config) -> None:
    try:
        found = find(Settings.from_environment().state, print)
    except StackError as error:
        # the tests that need them fail with their own words; the others still run
        config.issue_config_time_warning(pytest.PytestWarning(str(error)), stacklevel=1)
        return
    folders = [str(binary.path.parent) for binary in (found.prometheus, found.alertmanager)]
    os.environ["PATH"] = os.pathsep.join([*dict.fromkeys(folders), os.environ["PATH"]])
