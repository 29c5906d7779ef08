#!/usr/bin/env python3
"""The walker's monitor by its old name: `heapwatch monitor` with the same options."""

import sys

from heapwatch.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["monitor", *sys.argv[1:]]))
