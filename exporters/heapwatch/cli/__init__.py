"""The `heapwatch` command."""

import sys

if sys.platform == "win32":
    raise SystemExit("heapwatch runs on Linux and macOS; on Windows it runs in WSL 2")
