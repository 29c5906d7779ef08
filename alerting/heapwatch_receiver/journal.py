"""Whether SQLite's write-ahead log holds transactions that SQLite drops, as the log is damaged before them.

SQLite reads such a log up to the damage and says nothing: https://sqlite.org/fileformat.html#the_write_ahead_log
"""

from __future__ import annotations

import struct

_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24


def drops_transactions(log: bytes, kept: int) -> bool:
    """Whether a transaction was committed behind the `kept` frames that SQLite reads.

    A frame belongs to the present log if it has the salts of the header. The last frame of a transaction has
    the size of the database, the others 0.
    """
    if len(log) < _HEADER_BYTES:
        return False
    page_bytes, salts = struct.unpack_from(">I", log, 8)[0], log[16:24]
    frame_bytes = _FRAME_HEADER_BYTES + page_bytes
    for at in range(_HEADER_BYTES + kept * frame_bytes, len(log) - frame_bytes + 1, frame_bytes):
        if log[at + 8 : at + 16] == salts and any(log[at + 4 : at + 8]):
            return True
    return False
