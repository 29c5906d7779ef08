"""Writes warnings of the logger `heapwatch` to the file STRANGERS_LOG. Python imports this by itself."""

import logging
import os

if os.environ.get("STRANGERS_LOG"):
    _handler = logging.FileHandler(os.environ["STRANGERS_LOG"], delay=True)
    _handler.setLevel(logging.WARNING)
    _handler.setFormatter(logging.Formatter("%(levelname)s %(name)s pid %(process)d: %(message)s"))
    logging.getLogger("heapwatch").addHandler(_handler)
