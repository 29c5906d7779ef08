"""What a program of its own prints: for hooks that cannot be removed, libraries that must not be there."""

import os
import subprocess
import sys
import textwrap


def printed(code: str, **environment: str) -> str:
    """The output of a program, which must end with success."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=120, check=False, env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
