"""Creates the project's virtual environment with venv, uv and pip. Run by make; standard library only.

    python3 -m heapwatch_stack.bootstrap VENV REQUIREMENTS

The last step writes a stamp that names the interpreter and the installed requirements. An environment without
a stamp, left by an interruption or a full disk, or one of another interpreter is created anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heapwatch.runtime.own_files import make_private, open_own, read_text, replace
from heapwatch_stack import state_folder
from heapwatch_stack.errors import StackError

MINIMUM = (3, 11)  # the interpreter the requirements are locked for
_RUN_SECONDS = 3600
LOG = Path("logs", "pip.log")  # in the state folder
REPOSITORY = Path(__file__).resolve().parents[2]
TORCH = REPOSITORY / "requirements" / "torch.txt"
UV = REPOSITORY / "requirements" / "uv.txt"
# With containers, the host needs no torch: the example trainer, which uses it, runs in a container.
WITHOUT_TORCH = "stack.txt"
# On Linux x86-64, torch from PyPI downloads gigabytes of CUDA libraries. This index has the small CPU build.
CPU_TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
_NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
_ERROR = re.compile(r"^ERROR: .*", re.MULTILINE)
_INDEX = re.compile(r"^(?:global|install|:env:)\.index-url='(.*)'$", re.MULTILINE)


def ensure(venv: Path, requirements: Path) -> None:
    """Create or complete `venv` so that it holds the pinned packages of `requirements` and this project."""
    state_folder.make(venv.parent)
    with state_folder.locked(venv.parent / "bootstrap.lock"):
        _ensure(venv, requirements)


def _ensure(venv: Path, requirements: Path) -> None:
    stamp = venv / "complete"
    interpreter = _line("interpreter", sys.version.encode(), str(REPOSITORY).encode())
    wanted = _fingerprint(requirements)
    lines = read_text(stamp).splitlines() if stamp.is_file() else []
    usable = interpreter in lines and (venv / "bin" / "python").exists()
    if usable and wanted in lines:
        return
    stamp.unlink(missing_ok=True)
    if not usable:
        _say(f"creating the Python environment in {venv}")
        _run([sys.executable, "-m", "venv", "--clear", str(venv)], venv.parent)
    _install(venv, requirements)
    others = [line for line in lines if usable and line.split()[0] not in ("interpreter", requirements.name)]
    replace(stamp, "\n".join([interpreter, *others, wanted]) + "\n", 0o644)


def _fingerprint(requirements: Path) -> str:
    """A requirements file's name with a digest of what an installation from it reads."""
    files = (requirements, TORCH, REPOSITORY / "pyproject.toml")
    return _line(requirements.name, *(file.read_bytes() for file in files))


def _line(name: str, *parts: bytes) -> str:
    return f"{name} {hashlib.sha256(b'|'.join(parts)).hexdigest()}"


def _install(venv: Path, requirements: Path) -> None:
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    # Modules are compiled at their first import, and most are never imported.
    install = [*pip, "install", "--no-compile"]
    locked = ["--no-deps", "--require-hashes", "-r"]  # a lock names every package with its hashes
    _say(f"installing the packages of {requirements.name}, which may take minutes: {venv.parent / LOG}")
    try:
        _run([*install, *locked, str(UV)], venv.parent)
        uv = [str(venv / "bin" / "uv"), "pip", "install", "--python", pip[0]]
        _run([*uv, *locked, str(requirements), *_index_of(pip)], venv.parent)
    except StackError:  # uv, which takes a tenth of pip's time, knows only a part of pip's configuration
        _run([*install, *locked, str(requirements)], venv.parent)
    _run([*install, "--no-deps", "--no-build-isolation", "-e", str(REPOSITORY)], venv.parent)
    if requirements.name != WITHOUT_TORCH:
        with _programs_fetched(venv):
            _run([*install, "-r", str(TORCH), *_torch_index()], venv.parent)


def _index_of(pip: list[str]) -> list[str]:
    """The option for the package index that pip is configured to use; none for PyPI."""
    command = [*pip, "config", "list"]
    configured = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False)
    return [part for url in _INDEX.findall(configured.stdout)[-1:] for part in ("--index-url", url)]


@contextmanager
def _programs_fetched(venv: Path) -> Iterator[None]:
    """Fetch Prometheus and Alertmanager meanwhile; if that fails, `heapwatch up` tries again and says why."""
    command = [str(venv / "bin" / "heapwatch"), "tools"]
    where = {**os.environ, "HEAPWATCH_STATE": str(venv.parent)}
    with subprocess.Popen(
        command, env=where, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as fetching:
        try:
            yield
            fetching.wait(timeout=_RUN_SECONDS)
        except BaseException:
            fetching.terminate()
            raise


def _torch_index() -> list[str]:
    """The option for the index with the CPU builds of torch, where they suffice and the index answers."""
    if _NVIDIA_DRIVER.exists() or os.uname().machine != "x86_64" or sys.platform != "linux":
        return []
    try:
        urllib.request.urlopen(f"{CPU_TORCH_INDEX}/torch/", timeout=5).close()
    except OSError:
        _say(f"{CPU_TORCH_INDEX} does not answer: taking torch from the configured package index")
        return []
    return ["--extra-index-url", CPU_TORCH_INDEX]


def _run(command: list[str], state: Path) -> None:
    """Run a command with its output in the log; StackError with its first error if it fails."""
    log = state / LOG
    make_private(log.parent)
    with os.fdopen(open_own(log, os.O_RDWR | os.O_CREAT | os.O_TRUNC), "w+", encoding="utf-8") as output:
        completed = subprocess.run(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=REPOSITORY, timeout=_RUN_SECONDS
        )
        output.seek(0)
        if completed.returncode != 0:
            error = _ERROR.search(output.read())
            raise StackError(
                f"{' '.join(command[1:3])} failed: {error[0] if error else 'see'} (output: {log})"
            )


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
        ensure(*(Path(name).absolute() for name in arguments))
    except (StackError, OSError, subprocess.TimeoutExpired) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: run make again, which creates the environment again", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
