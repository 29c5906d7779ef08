"""Writes what the logger `heapwatch` says to the file TRAINER_LOG. Python imports this by itself."""

import logging
import os
from typing import Any

_make = logging.getLogRecordFactory()


def _observed(*args: Any, **kwargs: Any) -> logging.LogRecord:
    # Not a handler: one more of them would change what the trainer's own set-up of logging prints.
    record = _make(*args, **kwargs)
    if record.name.split(".")[0] == "heapwatch" and record.levelno >= logging.INFO:
        with open(os.environ["TRAINER_LOG"], "a", encoding="utf-8") as log:
            log.write(f"{record.levelname} {record.name} pid {os.getpid()}: {record.getMessage()}\n")
    return record


if os.environ.get("TRAINER_LOG"):
    logging.setLogRecordFactory(_observed)
