"""The lock holds what pyproject.toml asks for, one small torch and no local path."""

from __future__ import annotations

import re

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.repository import REPOSITORY

PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;+]+)", re.MULTILINE)
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
LEFT_OUT = {
    "stack.txt": set(PROJECT["optional-dependencies"]) - {"stack", "receiver"},
    "run.txt": {"arrays", "native", "frameworks", "test", "lint", "third-party"},
    "dev.txt": {"third-party"},
    "third-party.txt": {"arrays", "native", "test", "lint"},
}


def pins(name: str) -> dict[str, str]:
    """Name and version of everything that this file and torch's install."""
    folder = REPOSITORY / "requirements"
    return {
        canonicalize_name(pin): version
        for file in (folder / name, folder / "torch.txt")
        for pin, version in PIN.findall(file.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("name", LEFT_OUT)
def test_every_requirement_is_pinned_to_a_version_it_allows(name: str) -> None:
    extras = PROJECT["optional-dependencies"]
    wanted = set(extras) - LEFT_OUT[name]
    locked = pins(name)
    for text in [*PROJECT["dependencies"], *(line for extra in wanted for line in extras[extra])]:
        requirement = Requirement(text)
        if (
            requirement.name == PROJECT["name"]
        ):  # an extra made of other extras, which are looked at themselves
            continue
        version = locked.get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name} is not in requirements/{name}: make lock"
        assert requirement.specifier.contains(version), f"{requirement} but {version} is locked: make lock"


def test_the_locks_agree() -> None:
    stack, run, dev = (pins(name) for name in ("stack.txt", "run.txt", "dev.txt"))
    assert stack.items() <= run.items()
    assert run.items() <= dev.items()


def test_no_cuda_and_nothing_of_one_machine() -> None:
    for file in (REPOSITORY / "requirements").glob("*.txt"):
        text = file.read_text()
        assert not re.search(
            r"^nvidia-(?!ml-py)|^triton|^cuda|\+cpu|://|--(find-links|index)", text, re.MULTILINE
        ), file.name


@pytest.mark.parametrize("name", LEFT_OUT)
def test_everything_but_torch_bears_a_hash(name: str) -> None:
    text = (REPOSITORY / "requirements" / name).read_text()
    for pin in re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)):
        assert re.search(r"==\S+ \\\n\s+--hash=sha256:[0-9a-f]{64}", pin), pin[:60]
