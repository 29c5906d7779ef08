"""For every test: what `make tools` fetched is found first, and the files that take longest begin."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).parents[1]
# A file is run by one worker. Each of these takes a minute or so, or more; all others run meanwhile.
FIRST = (
    "tests/e2e/test_loop.py",
    "tests/e2e/test_operations.py",
    "tests/prometheus/test_rules.py",
    "tests/harmless/test_harmless.py",
    "tests/alerting/receiver/test_receiver.py",
    "tests/dashboards/viewer/test_browser.py",
    "tests/exporters/integrations/test_ray.py",
    "tests/exporters/cli/test_run.py",
    "tests/exporters/testing/test_plugin.py",
    "tests/alerting/test_alertmanager_notifications.py",
)

# Until all tests are collected: what they import is not garbage, and is looked through again and again.
gc.disable()
# No test may fail because the machine is busy.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("untimed"), max_examples=10_000)
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    fetched = Path(os.environ.get("HEAPWATCH_STATE") or REPOSITORY / ".heapwatch") / "bin"
    os.environ["PATH"] = os.pathsep.join([str(fetched), os.environ["PATH"]])
    # A shell's background job ignores it, and so would the programs that tests start and interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {file: place for place, file in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(FIRST)))


def pytest_collection_finish() -> None:
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def hidden_from_the_collector() -> None:
    """Hide what is loaded from the garbage collector: hundreds of tests run it, or list its objects."""
    gc.collect()
    gc.freeze()
