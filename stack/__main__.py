"""`python -m heapwatch.stack`."""

import sys

from heapwatch.stack.cli import main

sys.exit(main())
