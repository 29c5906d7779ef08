#!/usr/bin/env bash
# The walker's start script by its old name: `heapwatch monitor` with the same options.
set -euo pipefail
here=$(dirname "$0")
python=${HEAPWATCH_STATE:-$here/../.heapwatch}/venv/bin/python # what make set up
[ -x "$python" ] || python=python3
exec "${PYTHON:-$python}" "$here/monitor_system_health.py" "$@"
