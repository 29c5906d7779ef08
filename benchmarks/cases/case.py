"""A case: a script that leaks, the change that mends it, and how the leak may be named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from benchmarks.measure import with_version

SUITE = Path(__file__).with_name("suite")
MARK = "# LEAK"


class BrokenCase(ValueError):
    """A case whose description does not fit its script."""


@dataclass(frozen=True)
class Case:
    """One leak from a public thread.

    Args:
        name: the case's folder.
        thread: its address.
        library: the distribution or the standard module that the script uses.
        leak: what leaks, in one sentence.
        script: text of the script; lines that end in `# LEAK` allocate or keep what leaks.
        fixes: texts of the script, and what stands there in its healthy twin.
        paths: regular expressions, any of which a right path contains.
        types: the same for the type that grows.
        kinds: kinds of finding that are a right name by themselves.
        bounded: what grows has an end, though a far one; to say so is as good as to call it a leak.
        minutes: that it runs at least, where growth without a name has to be told from a start-up.

    """

    name: str
    thread: str
    library: str
    leak: str
    script: str
    fixes: Mapping[str, str]
    paths: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    bounded: bool = False
    minutes: float = 0.0

    @cached_property
    def lines(self) -> frozenset[int]:
        """Numbers of the marked lines, from 1."""
        return frozenset(
            number for number, line in enumerate(self.script.splitlines(), 1) if line.endswith(MARK)
        )

    @property
    def installed(self) -> str:
        """The library with the version that is installed; a standard module by its name alone."""
        return with_version(self.library, self.library)

    @property
    def healthy_script(self) -> str:
        """The twin's text.

        Raises:
            BrokenCase: a fix does not fit exactly one place of the script.

        """
        text = self.script
        for old, new in self.fixes.items():
            if text.count(old) != 1:
                raise BrokenCase(f"{self.name}: {old!r} stands {text.count(old)} times in the script")
            text = text.replace(old, new)
        return text

    def write(self, folder: Path, *, healthy: bool) -> Path:
        """Write the script, or its twin, to `folder` as train.py, without the marks."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "train.py"
        text = self.healthy_script if healthy else self.script
        path.write_text("\n".join(line.removesuffix(MARK).rstrip() for line in text.splitlines()) + "\n")
        return path


def load(folder: Path) -> Case:
    """Read a case from its folder.

    Raises:
        BrokenCase: its description lacks something or has what no case has.

    """
    described = yaml.safe_load((folder / "case.yml").read_text())
    try:
        described["fixes"] = {fix["old"]: fix["new"] for fix in described.pop("fix")}
        described.update({name: tuple(described.get(name, ())) for name in ("paths", "types", "kinds")})
        return Case(name=folder.name, script=(folder / "train.py").read_text(), **described)
    except (KeyError, TypeError) as error:
        raise BrokenCase(f"{folder.name}: {error}") from error


def load_all() -> list[Case]:
    return [load(path.parent) for path in sorted(SUITE.glob("*/case.yml"))]
