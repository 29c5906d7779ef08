"""`python -m heapwatch`."""

import sys

from heapwatch.cli.main import main

sys.exit(main())
