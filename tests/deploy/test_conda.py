"""The conda recipe says what pyproject.toml says."""

from __future__ import annotations

import pytest
import yaml

from tests.support.repository import REPOSITORY

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 cannot read pyproject.toml")


def test_the_recipe_has_the_version_the_command_and_the_requirements_of_the_project() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    recipe = yaml.safe_load((REPOSITORY / "deploy" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    stated = project["project"]
    assert recipe["context"]["version"] == stated["version"]
    (command,) = stated["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(command)]
    python = f"python{stated['requires-python']}"
    wanted = [name.replace("-", "_") for name in (python, *stated["dependencies"])]
    assert [one.replace(" ", "") for one in recipe["requirements"]["run"]] == wanted
    assert [one.replace(" ", "") for one in recipe["requirements"]["host"]] == [
        python,
        "pip",
        *project["build-system"]["requires"],
    ]
    assert (recipe["about"]["summary"], recipe["about"]["license"]) == (
        stated["description"],
        stated["license"],
    )
