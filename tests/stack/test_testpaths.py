from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[2]


def test_every_folder_of_tests_is_run():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    folders = {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if any(path.glob("**/test_*.py"))}
    # trains the examples for minutes: `make documents-test`
    assert set(settings["testpaths"]) == folders - {"tests/documents"}
