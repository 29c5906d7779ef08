#!/usr/bin/env bash
# The walker's start script by its old name: `heapwatch monitor` with the same options.
exec "${PYTHON:-python3}" "$(dirname "$0")/monitor_system_health.py" "$@"
