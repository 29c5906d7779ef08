#!/usr/bin/env bash
# The walker's start script by its old name: `heapwatch monitor` with the same options.
set -euo pipefail
here=$(dirname "$0")
python=python3
for state in "$here/../.heapwatch" "${HEAPWATCH_STATE:-}"; do # what make set up
    if [ -x "$state/venv/bin/python" ]; then python=$state/venv/bin/python; fi
done
exec "${PYTHON:-$python}" "$here/monitor_system_health.py" "$@"
