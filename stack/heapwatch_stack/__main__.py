"""`python -m heapwatch_stack`."""

import sys

from heapwatch_stack.cli import main

sys.exit(main())
