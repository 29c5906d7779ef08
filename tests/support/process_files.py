"""A process file system of a test's own: proc(5)."""

from __future__ import annotations

from pathlib import Path


class ProcessFiles:
    """Writes the files of processes into a folder, which `path` names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = str(folder)

    def process(
        self,
        pid: int,
        *words: str,
        parent: int = 0,
        name: str = "python",
        program: str = "/usr/bin/python3.11",
        state: str = "S",
        environment: str = "",
        anonymous: int = 0,
        shared: int = 0,
    ) -> None:
        """Write a process; memory is in bytes."""
        folder = self.folder / str(pid)
        for inner in ("fd", f"task/{pid}"):
            (folder / inner).mkdir(parents=True, exist_ok=True)
        (folder / "cmdline").write_text("".join(f"{word}\0" for word in words))
        behind = [state, str(parent), *["0"] * 17, "100"]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(behind)}")
        (folder / "environ").write_text(environment)
        (folder / "exe").unlink(missing_ok=True)
        (folder / "exe").symlink_to(program)
        (folder / f"task/{pid}/children").write_text("")
        self.memory(pid, anonymous, shared)
        siblings = self.folder / str(parent) / "task" / str(parent) / "children"
        if siblings.exists():
            siblings.write_text(f"{siblings.read_text()}{pid} ")

    def memory(self, pid: int, anonymous: int, shared: int = 0) -> None:
        """Change the memory of a process, in bytes."""
        (self.folder / str(pid) / "status").write_text(
            f"Name:\tpython\nRssAnon:\t{anonymous // 1024} kB\nRssShmem:\t{shared // 1024} kB\n"
        )

    def opens(self, pid: int, descriptor: int, file: Path) -> None:
        """Let a process have a file open."""
        (self.folder / str(pid) / "fd" / str(descriptor)).symlink_to(file)
