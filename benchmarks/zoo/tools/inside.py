"""`python -m benchmarks.zoo.tools.inside TOOL SECONDS OUT SCRIPT`: a script, and a tool in a thread."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any


def main() -> None:
    tool, seconds, out, script = sys.argv[1:]
    module = importlib.import_module(f"benchmarks.zoo.tools.{tool}")
    sys.argv = [script]
    sys.path[0] = str(Path(script).parent)
    if hasattr(module, "start"):
        module.start()
    threading.Thread(target=_watch, args=(module, float(seconds), Path(out), script), daemon=True).start()
    runpy.run_path(script, run_name="__main__")


def _watch(module: Any, seconds: float, out: Path, script: str) -> None:
    began = time.monotonic()
    try:
        out.write_text(json.dumps(module.watch(seconds, script)))
        status = 0
    except BaseException:
        traceback.print_exc()
        status = 1
    print(f"told after {time.monotonic() - began:.0f} s", file=sys.stderr)
    os._exit(status)


def sleep_until(began: float, seconds: float) -> None:
    """Sleep until `seconds` after `began` (of time.monotonic)."""
    time.sleep(max(0.0, began + seconds - time.monotonic()))


if __name__ == "__main__":
    main()
