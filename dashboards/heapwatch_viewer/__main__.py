"""Serve the dashboards: `python -m heapwatch_viewer`.

Environment: HEAPWATCH_BIND (127.0.0.1), HEAPWATCH_DASHBOARDS_PORT (3009),
HEAPWATCH_PROMETHEUS_URL (http://127.0.0.1:9090).
"""

import sys

from heapwatch_viewer.app import serve
from heapwatch_viewer.settings import Settings

if __name__ in {"__main__", "__mp_main__"}:
    try:
        serve(Settings.from_environment())
    except ValueError as problem:
        sys.exit(f"heapwatch viewer: {problem}")
