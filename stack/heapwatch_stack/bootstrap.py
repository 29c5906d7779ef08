"""Creates the project's virtual environment, and repairs it. Run by make; standard library only.

    python3 -m heapwatch_stack.bootstrap VENV REQUIREMENTS...

The last step writes a stamp that names the installed requirements. An environment without a stamp, left by an
interruption or a full disk, is created again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

from heapwatch.runtime.own_files import make_private, open_own, read_text, replace
from heapwatch_stack import state_folder
from heapwatch_stack.debian import PackageError, unpack
from heapwatch_stack.errors import StackError

MINIMUM = (3, 11)  # the interpreter the requirements are locked for
_RUN_SECONDS = 1800
_END_SECONDS = 60  # for a program that has closed its output
REPOSITORY = Path(__file__).resolve().parents[2]
TORCH = REPOSITORY / "requirements" / "torch.txt"
# With containers, the host needs no torch: the example trainer, which uses it, runs in a container.
WITHOUT_TORCH = "stack.txt"
# On Linux x86-64, torch from PyPI downloads gigabytes of CUDA libraries. This index has the small CPU build.
CPU_TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;+]+)")


def ensure(venv: Path, requirements: list[Path]) -> None:
    """Create or complete `venv` so that it holds the pinned packages of `requirements` and this project."""
    try:
        state_folder.make(venv.parent)
    except FileExistsError as error:
        raise StackError(f"{error}: set HEAPWATCH_STATE to another") from error
    message = "another make sets up the Python environment: waiting for it"
    with state_folder.locked(venv.parent / "bootstrap.lock", waits=lambda: _say(message)):
        _ensure(venv, requirements)


def _ensure(venv: Path, requirements: list[Path]) -> None:
    stamp = venv / "complete"
    wanted = {_fingerprint(path) for path in requirements}
    installed = set(read_text(stamp).splitlines()) if stamp.is_file() else set()
    damaged = not installed or bool(damage(venv))
    if wanted <= installed and not damaged:
        return
    if damaged:
        if venv.exists():
            if not state_folder.carried_by(venv) and not stamp.exists() and any(venv.iterdir()):
                raise StackError(f"{venv} was not made by this project: move it, or set HEAPWATCH_STATE")
            _say("the Python environment is incomplete: creating it again")
            state_folder.discard(venv)
            installed = set()
        _create(venv)
    stamp.unlink(missing_ok=True)
    _install(venv, requirements)
    names = {path.name for path in requirements}
    kept = {line for line in installed if line.split()[0] not in names}
    replace(stamp, "\n".join(sorted(wanted | kept)) + "\n", 0o644)


def damage(venv: Path) -> str | None:
    """The first installed file that is missing; None if every file that pip recorded exists."""
    if not (venv / "bin" / "python").exists():
        return "bin/python"
    for record in sorted(venv.glob("lib/python3.*/site-packages/*.dist-info/RECORD")):
        site_packages = record.parent.parent
        for line in record.read_text(encoding="utf-8").splitlines():
            name = line.split(",", 1)[0].strip('"')
            if name.endswith(".py") and not os.path.exists(site_packages / name):
                return name
    return None


def _fingerprint(requirements: Path) -> str:
    """A requirements file's name with a digest of its contents, the checkout and the interpreter."""
    files = (requirements, TORCH, REPOSITORY / "pyproject.toml")
    parts = (*(file.read_bytes() for file in files), str(REPOSITORY).encode(), sys.version.encode())
    return f"{requirements.name} {hashlib.sha256(b'|'.join(parts)).hexdigest()}"


def _create(venv: Path) -> None:
    _say(f"creating the Python environment in {venv}")
    state_folder.make(venv)
    _run([sys.executable, "-m", "venv", "--without-pip", str(venv)], "python3 -m venv")
    _bring_pip(venv)


def _bring_pip(venv: Path) -> None:
    """Install pip with ensurepip; on a Debian without python3-venv, from the wheel of that package."""
    python = str(venv / "bin" / "python")
    with suppress(ModuleNotFoundError):
        if importlib.util.find_spec("ensurepip.__main__"):
            _run([python, "-m", "ensurepip", "--upgrade"], "ensurepip")
            return
    with tempfile.TemporaryDirectory(dir=venv.parent) as folder:
        try:
            unpack(["python3-pip-whl"], Path(folder) / "pip", _say)
        except PackageError as error:
            raise StackError(
                f"this Python has no ensurepip (Debian: apt install python3-venv); {error}"
            ) from error
        (wheel,) = Path(folder).glob("pip/usr/share/python-wheels/pip-*.whl")
        _run([python, f"{wheel}/pip", "install", "-q", "--no-index", "--no-deps", str(wheel)], "pip")


def _install(venv: Path, requirements: list[Path]) -> None:
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    pip.append("--no-compile")  # modules are compiled at their first import, and most are never imported
    locked = [option for path in requirements for option in ("-r", str(path))]
    pins = [pin for path in requirements for pin in _pins(path)]
    log = venv.parent / "logs" / "pip.log"
    make_private(log.parent)
    # The lock file names every package with its hashes, so pip resolves nothing and verifies everything.
    _pip([*pip, "--no-deps", "--require-hashes", *locked], log, len(pins))
    if any(path.name != WITHOUT_TORCH for path in requirements):
        index = _torch_index()
        _pip([*pip, "-r", str(TORCH), *(["--extra-index-url", index] if index else [])], log, 1)
    _pip([*pip, "--no-deps", "--no-build-isolation", "-e", str(REPOSITORY)], log, 1)


def _pins(requirements: Path) -> list[tuple[str, str]]:
    lines = requirements.read_text(encoding="utf-8").splitlines()
    return [(match[1], match[2]) for line in lines if (match := PIN.match(line))]


def _torch_index() -> str | None:
    """An index with CPU builds of torch, if needed and reachable; HEAPWATCH_TORCH_INDEX="" means PyPI."""
    index = os.environ.get("HEAPWATCH_TORCH_INDEX", CPU_TORCH_INDEX)
    if not index or os.uname().machine != "x86_64" or sys.platform != "linux":
        return None
    try:
        urllib.request.urlopen(index.rstrip("/") + "/torch/", timeout=5).close()
    except (OSError, ValueError):
        _say(f"{index} does not answer: taking torch from the configured package index")
        return None
    return index


def _pip(command: list[str], log: Path, expected: int) -> None:
    """Run pip with its output in `log`; show one line of progress, without a terminal the large downloads."""
    moving = sys.stderr.isatty()
    collected = 0
    with os.fdopen(open_own(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=REPOSITORY
        )
        assert process.stdout is not None
        error = ""
        for line in process.stdout:
            output.write(line)
            collected += line.startswith(("Collecting ", "Requirement already satisfied"))
            if line.startswith("ERROR:"):
                error = error or line.strip()
            elif moving and line.split(" ", 1)[0] in ("Collecting", "Downloading", "Installing", "Building"):
                print(
                    f"\r\033[K  [{min(collected, expected)}/{expected}] {line.strip()[:90]}",
                    end="",
                    file=sys.stderr,
                )
            elif line.startswith("Installing collected") or re.search(r"\(\d{2,}\.\d MB\)", line):
                _say(line.strip()[:100])
    if moving:
        print("\r\033[K", end="", file=sys.stderr)
    if process.wait(_END_SECONDS) != 0:
        raise StackError(f"pip failed: {error or f'see {log}'} (whole output: {log})")


def _run(command: list[str], name: str) -> None:
    try:
        done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=_RUN_SECONDS)
    except subprocess.TimeoutExpired:
        raise StackError(f"{name} has not ended within {_RUN_SECONDS} s") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit {done.returncode}"]
        raise StackError(f"{name} failed: {lines[-1]}")


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Create the environment; returns 0, 1 with one line on stderr if it failed, 130 if interrupted."""
    if sys.version_info < MINIMUM:
        version = ".".join(map(str, sys.version_info[:3]))
        print(
            f"error: Python {version} is too old: 3.11 or newer is needed (PYTHON=python3.11 make up)",
            file=sys.stderr,
        )
        return 1
    try:
        ensure(Path(arguments[0]).absolute(), [Path(name).absolute() for name in arguments[1:]])
    except (StackError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: run make again, which creates the environment again", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
