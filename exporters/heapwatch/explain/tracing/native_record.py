"""`python native_record.py FILE FOLDER`: print the largest allocations of a memray record that stay.

A program of its own, so that reading takes no memory of the trainer; FOLDER is where memray is installed. It
prints a JSON list of `[bytes, [[function, file, line], ...]]`, the innermost function first.
"""

from __future__ import annotations

import json
import sys

_MOST = 20
_DEEPEST = 40

if __name__ == "__main__":
    sys.path.append(sys.argv[2])
    import memray

    records = memray.FileReader(sys.argv[1]).get_leaked_allocation_records(merge_threads=True)
    largest = sorted(records, key=lambda record: -record.size)[:_MOST]
    print(json.dumps([(record.size, record.stack_trace(_DEEPEST)) for record in largest]))
