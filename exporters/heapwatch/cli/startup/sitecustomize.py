"""Imported by the interpreter of `heapwatch run` before the program and its own `sitecustomize`."""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path.remove(_here)
del sys.modules["sitecustomize"]
# The folder of this package may no longer be on the path.
sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(_here))))
try:
    from heapwatch.cli.program import begin
finally:
    sys.path.pop()
begin()

# If the program has no `sitecustomize`, the interpreter expects this ImportError.
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
