"""The constants by which growth of containers and types is judged. Levels have those of `heapwatch.judge`.

With another value of any of them, a test in `tests/exporters/explain` fails.
"""

from __future__ import annotations

from heapwatch.judge.measured import FAST_MINUTES, WINDOWS
from heapwatch.judge.trainer import MATURE_MINUTES

# How long growth has to last, in seconds.

# Before any verdict: ten seconds of start-up, and thirty in which readings show a rate.
TOO_EARLY_SECONDS = 40.0
# Of a container without a bound. Its items are counted, so there is no noise.
SHORTEST_SPAN = 30.0
# Of a container that has grown by little: a small cache may fill for two minutes.
CAREFUL_SPAN = 120.0
# Of one from which the program removes single items, as they may only become more for a while.
REMOVED_SPAN = 60.0
# Of one that the program empties or cuts to an unknown length: it may be emptied for the first time later.
PATIENCE_SPAN = 60.0 * WINDOWS[1]
# Of the process, before its growth is put down to items that cannot be measured, or called unexplained.
MEASURED_SPAN = 60.0
# Of numbers of objects and processes, which swing.
COUNTED_SPAN = 120.0
# Growth of memory that has lasted for so long and does not slow down is said to last, see the judge.
LASTING_SECONDS = 60.0 * MATURE_MINUTES
FAST_SECONDS = 60.0 * FAST_MINUTES
# A container has stopped if nothing changes for so long, and for twice its longest pause between two changes.
STOPPED_SECONDS, STOPPED = 60.0, 2.0

# How much it has to be.

# A container that has grown by less, in bytes and as a share of resident memory, has grown by little.
LITTLE_BYTES, LITTLE_SHARE = 8e6, 0.02
# A rise of memory that is not mentioned, even where it is even: an interpreter that runs takes some.
NOISE_BYTES = 1e6
# Growth is explained if what has a name is more than this share of it.
EXPLAINED = 0.5
# Findings below this share of all growth are not reported.
NOTED_SHARE = 0.02
MOST_FINDINGS = 20
# A container may hold this multiple of its bound: programs trim every so often.
PAST_BOUND = 1.05
# The floor of a container that is emptied has to rise by this share of its swing.
OF_SWING = 0.5

# What counts as equal.

# The rate of the last quarter over the whole rate, from which a process grows steadily.
STEADY = 0.8
# Containers that grow at this share of the fastest one's rate, or of the number of entities, grow alike.
SAME_RATE = 0.8
# Leaks that together grow by more than the process, beyond the error of sizes, share what they hold.
SHARED = 0.8
# Growth of a type by this multiple of all growth cannot be its own: its instances share what they reach.
IMPOSSIBLE = 2.0
