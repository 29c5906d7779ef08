"""What a program of its own prints: for hooks that cannot be removed, libraries that must not be there."""

import os
import subprocess
import sys
import textwrap


def printed(code: str, **environment: str) -> str:
    """The output of a program; its error output where it fails."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=120, check=False, env=os.environ | environment,
    )  # fmt: skip
    return done.stdout.strip() if done.returncode == 0 else f"exit status {done.returncode}: {done.stderr}"
