"""The library's structure in numbers: `python -m tests.architecture.numbers [REVISION]`, beside a revision's.

A unit is a folder or a module directly in `exporters/heapwatch`. Imports
inside of functions count. Times are CPU time, the median of some starts.
"""

from __future__ import annotations

import ast
import io
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = Path("exporters", "heapwatch")
STARTS = 3
COUNT = "import sys; print(sum(name.split('.')[0] == 'heapwatch' for name in sys.modules))"


class Library:
    """The modules of a tree and what they import of each other."""

    def __init__(self, tree: Path) -> None:
        self.sources = tree / LIBRARY.parent
        folder = tree / LIBRARY
        paths = list(folder.rglob("*.py"))
        self.modules = {
            ".".join(path.relative_to(self.sources).with_suffix("").parts): path for path in paths
        }
        self.modules = {name.removesuffix(".__init__"): path for name, path in self.modules.items()}
        self.edges = {(module, known) for module in self.modules for known in self._imports(module)}

    def _imports(self, module: str) -> Iterator[str]:
        path = self.modules[module]
        package = module.split(".")[: None if path.name == "__init__.py" else -1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                origin = ".".join([*base, *([node.module] if node.module else [])])
                names = [f"{origin}.{alias.name}" for alias in node.names]
            for name in names:
                known = name if name in self.modules else name.rpartition(".")[0]
                if known in self.modules and known != module:
                    yield known

    def unit(self, module: str) -> str:
        """The folder or module directly in the library that a module belongs to."""
        return ".".join(module.split(".")[:2])

    def unit_edges(self) -> set[tuple[str, str]]:
        """Which unit imports which other."""
        pairs = {(self.unit(one), self.unit(other)) for one, other in self.edges}
        return {pair for pair in pairs if pair[0] != pair[1] and "." in pair[0] and "." in pair[1]}

    def circular(self) -> set[tuple[str, str]]:
        """Imports between units that depend on each other."""
        edges = self.unit_edges()
        return {(one, other) for one, other in edges if one in reachable(other, edges)}

    def table(self) -> dict[str, str]:
        """What is printed, by what it is called."""
        units = sorted({self.unit(module) for module in self.modules} - {"heapwatch"})
        folders = [unit for unit in units if self.modules[unit].name == "__init__.py"]
        inside = {
            folder.partition(".")[2]: sum(self.unit(module) == folder for module in self.modules)
            for folder in folders
        }
        return {
            "modules": str(len(self.modules)),
            "lines": str(sum(len(path.read_text().splitlines()) for path in self.modules.values())),
            "folders and modules side by side": str(len(units)),
            "modules per folder": ", ".join(f"{name} {count}" for name, count in inside.items()),
            "imports between modules": str(len(self.edges)),
            "imports between units": str(len(self.unit_edges())),
            "of them in a circle": str(len(self.circular())),
            "modules that `import heapwatch` loads": self._python(f"import heapwatch; {COUNT}").strip(),
            "modules that `heapwatch.start` needs": self._python(
                f"import heapwatch; heapwatch.start; {COUNT}"
            ).strip(),
            "CPU time to import these": f"{self._seconds('import heapwatch; heapwatch.start') * 1000:.0f} ms",
        }

    def _seconds(self, code: str) -> float:
        """More than a Python that does nothing."""
        return self._cpu_seconds(code) - self._cpu_seconds("pass")

    def _cpu_seconds(self, code: str) -> float:
        self._python(code)  # which compiles it
        times = []
        for _ in range(STARTS):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self._python(code)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return statistics.median(times)

    def _python(self, code: str) -> str:
        environment = {"PYTHONPATH": str(self.sources)}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout


def reachable(start: str, edges: set[tuple[str, str]]) -> set[str]:
    """The units that `start` imports, directly or through others, and itself."""
    found, left = {start}, [start]
    while left:
        one = left.pop()
        new = {other for importer, other in edges if importer == one} - found
        found |= new
        left += new
    return found


def tables(revision: str | None) -> Iterator[tuple[str, dict[str, str]]]:
    """Of the revision, if one is given, and of the working tree."""
    if revision:
        archive = subprocess.run(
            ["git", "archive", revision, str(LIBRARY)], cwd=ROOT, capture_output=True, check=True
        )
        with (
            tempfile.TemporaryDirectory() as folder,
            tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files,
        ):
            files.extractall(folder, filter="data")
            yield revision, Library(Path(folder)).table()
    yield "now", Library(ROOT).table()


def main() -> int:
    """Print the table."""
    columns = dict(tables(sys.argv[1] if len(sys.argv) > 1 else None))
    print("|  |", " | ".join(columns), "|")
    print("|---|" + "---|" * len(columns))
    for name in columns["now"]:
        print(f"| {name} |", " | ".join(column[name] for column in columns.values()), "|")
    return 0


if __name__ == "__main__":
    sys.exit(main())
