"""Some rows alone, as tests.documents.mutation asks for them."""

import os

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the rows whose names begin as one of the lines of DOCUMENT_ROWS."""
    wanted = tuple(f"[{row}" for row in os.environ.get("DOCUMENT_ROWS", "").splitlines())
    if not wanted:
        return
    kept = [item for item in items if any(start in item.name for start in wanted)]
    missing = [start for start in wanted if not any(start in item.name for item in items)]
    if missing:
        raise pytest.UsageError(f"no row begins with {missing}")
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
