from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

from heapwatch import data
from tests.support.repository import REPOSITORY


def test_a_clone_reads_the_files_that_are_edited() -> None:
    assert data.path("prometheus", "rules") == REPOSITORY / "prometheus" / "rules"


def test_an_installation_reads_its_copies(tmp_path: Path) -> None:
    package = tmp_path / "heapwatch"
    (package / "files" / "prometheus").mkdir(parents=True)
    module = shutil.copy(str(data.__file__), package / "data.py")
    specification = importlib.util.spec_from_file_location("installed_data", module)
    assert specification is not None
    assert specification.loader is not None
    installed = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(installed)
    assert installed.path("prometheus") == package / "files" / "prometheus"


def test_nothing_in_the_repository_is_a_symbolic_link() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--stage"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert [line for line in listed.stdout.splitlines() if line.startswith("120000")] == []


def test_a_process_without_them_can_import_this_package_and_its_requirements():
    folders = data.packages()
    assert list(folders)[-1] == "heapwatch", "it imports the others"
    assert all((folder / "__init__.py").is_file() for folder in folders.values())
