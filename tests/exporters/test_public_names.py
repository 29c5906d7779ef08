from __future__ import annotations

from importlib.metadata import version

import pytest

import heapwatch


@pytest.mark.parametrize("name", heapwatch.__all__)
def test_a_public_name_is_there_and_listed(name: str) -> None:
    assert getattr(heapwatch, name).__name__ == name
    assert name in dir(heapwatch)


def test_the_version_is_that_of_the_installed_distribution() -> None:
    assert heapwatch.__version__ == version("heapwatch")
