"""Every trainer in one table: which one leaks, what, and the time until its memory limit."""

from heapwatch.judge.verdict import MEANINGS

from .. import colors
from ..colors import LEAK, VERDICTS
from ..dashboard import Dashboard, Row, two_a_line
from ..empty import HOW_TO_ADD, NO_LIMIT, NO_RANKS, NOBODY_ENDED
from ..panel import AGO, BYTES, COUNT, NUMBER, PER_SECOND, SECONDS, SHARE, Query
from ..panels import alarm, lines, number, states
from ..promql import LIFE, NAME, PROCESS, SEEN, STEP, current, max_by, min_by, named, select, sum_by
from ..queries import alerts, explanation, trainers
from ..tables import WRAPPED, Column, table
from .shared import (
    FORECAST_WORDS,
    NAMED,
    REMEDY,
    SITE,
    TIME_LEFT,
    TRAINER,
    USED,
    WHAT,
    alert_path,
    cleanups,
    firing_alerts,
    share,
    time_left,
    verdict,
)

# Lives of processes that ended in the time range, with what was last known of them.
_NAME = select(NAME)
_GONE = f"{SEEN} unless on ({LIFE}) last_over_time({_NAME}[2m])"
ENDED_AT = f"1000 * {max_by(LIFE, _GONE)}"


def _last(series: str) -> str:
    """The last value of each process that ended; the next one at the same address is another process."""
    return f"last_over_time(({named(series)})[$__range:{STEP}]) and on ({LIFE}) {_GONE}"


LAST_VERDICT = max_by(LIFE, _last(trainers.WORST))
LAST_MEMORY = max_by(LIFE, _last(trainers.RESIDENT))

# The ranks of a distributed run, taken together.
_RUN = "job, trainer, run, world_size"
_RANK = max_by(f"instance, rank, {_RUN}", select("trainer_info", 'rank!=""'))


def _of_ranks(of_trainer: str) -> str:
    return f"({of_trainer}) * on (job, instance) group_left (trainer, run, world_size) {_RANK}"


RANK_COUNT = f"count by ({_RUN}) ({_RANK})"
WORST_VERDICT_OF_RANKS = max_by(_RUN, _of_ranks(trainers.VERDICT))
LEAKING_RANKS = sum_by(_RUN, _of_ranks(f"{trainers.VERDICT} == bool {LEAK}"))
MEMORY_OF_RANKS = sum_by(_RUN, _of_ranks(trainers.RESIDENT))
LARGEST_RANK = max_by(_RUN, _of_ranks(trainers.RESIDENT))
SMALLEST_RANK = min_by(_RUN, _of_ranks(trainers.RESIDENT))

GLANCE = [
    number("Trainers", trainers.TRAINERS_COUNT, NUMBER, "Trainers and machines that run now.", width=3),
    alarm(
        "Leaking",
        trainers.trainers_that_are("leak"),
        colors.CRITICAL,
        "Trainers with a leak: growth that no warm-up, filling buffer or sawtooth explains. Good: 0.",
    ),
    alarm(
        "Over a limit",
        trainers.trainers_that_are("over a limit", "will not fit"),
        colors.WARNING,
        "Trainers over a threshold, or about to reach their memory limit, or whose buffers will not fit, "
        "leaking or not. Good: 0.",
    ),
    alarm(
        "Growing",
        trainers.trainers_that_are("growing"),
        colors.NOTICE,
        "Trainers whose growth goes on and is not yet certain, or is over its growth limit, leaking or not; "
        "what filling buffers explain is left out. Good: 0 after warm-up.",
    ),
    alarm(
        "Down or stalled",
        trainers.trainers_that_are("down or stalled"),
        colors.DOWN,
        "Trainers that cannot be scraped or make no progress. Good: 0.",
    ),
    number(
        "Shortest time to limit",
        trainers.SHORTEST_TIME_TO_LIMIT,
        SECONDS,
        "How long until the first trainer reaches its memory limit, at its present growth.",
        words=FORECAST_WORDS,
        thresholds=TIME_LEFT,
        empty=NO_LIMIT,
        width=5,
    ),
    alert_path(width=4),
]

TRAINERS = table(
    "Trainers by verdict",
    [
        *NAMED,
        verdict(trainers.VERDICT),
        Column("Per minute", trainers.KNOWN_GROWTH, BYTES, width=90),
        time_left(trainers.TIME_TO_LIMIT),
        WHAT,
        Column("type", label="type", hidden=True),
        SITE,
        REMEDY,
        Column("", explanation.TOP),
        Column("Ended by", label="cause", width=120, cell=WRAPPED),
        Column("", max_by(f"{PROCESS}, cause", select("job:trainer:lost"))),
        Column("Memory", trainers.KNOWN_RESIDENT, BYTES, width=80),
        share("Used", trainers.KNOWN_USED_SHARE, USED, width=100),
        Column("Alerts", current(alerts.ALERTS_FIRING_BY_TRAINER), COUNT, width=60, options={"noValue": "0"}),
    ],
    "One row a trainer or machine, the worst first; click its name to open it. What: what grows most, by its "
    "path from a root of the program, and the line that fills it. Trainers that were lost stay for a day, "
    "with what was known last. Good: healthy, growth near zero. Bad: leak.",
    empty=HOW_TO_ADD,
    sort_by="Verdict",
)

WORDS = "\n\n".join(
    (
        *(f"{word}: {meaning.claim}." for word, meaning in MEANINGS.items()),
        "over a limit: a level is over its threshold, or memory will reach its limit within hours.",
        "not judged: the trainer answers, but has not judged its memory for minutes.",
        "down or stalled: the trainer cannot be scraped, or makes no progress.",
    )
)
MEMORY = lines(
    "Memory used of the limit by trainer",
    Query(trainers.USED_SHARE, "{{trainer_name}}", lives=True),
    SHARE,
    "Resident memory of each trainer and its workers over the container's limit, else over physical memory. "
    "Good: rises while buffers fill, then flat. Bad: never stops rising.",
    height=9,
    marked=True,
)
VERDICT_LINES = states(
    "Verdicts",
    Query(trainers.VERDICT, "{{trainer_name}}", lives=True),
    VERDICTS,
    "The verdict on each trainer, and since when. Good: healthy after a short warm-up. "
    "Bad: growing, then leak.\n\n" + WORDS,
)

OVER_TIME = two_a_line(
    lines(
        "Memory growth per minute by trainer",
        Query(trainers.MEMORY_GROWTH, "{{trainer_name}}", lives=True),
        BYTES,
        "Slope over ten minutes. Good: near zero, or above it only while buffers fill. Bad: never falls. "
        "The page Trainer has the limit of each.",
        marked=True,
    ),
    lines(
        "Memory by trainer",
        Query(trainers.RESIDENT, "{{trainer_name}}", lives=True),
        BYTES,
        "Resident memory of each trainer and its workers.",
        marked=True,
    ),
    lines(
        "Time to limit by trainer",
        Query(trainers.TIME_TO_LIMIT_SOON, "{{trainer_name}}", lives=True),
        SECONDS,
        "How long each growing trainer has until its limit. Good: no line. Bad: a line falling to zero.",
    ),
    lines(
        "Progress by trainer",
        Query(trainers.PROGRESS, "{{trainer_name}} {{unit}}s", lives=True),
        PER_SECOND,
        "Steps, episodes, epochs or generations per second. Good: steady. Bad: falling while memory "
        "grows, or zero.",
    ),
    lines(
        "Memory outside trainers",
        Query("job:machine_memory:unwatched_bytes", "machine of the stack"),
        BYTES,
        "Memory in use on the stack's machine that no trainer there holds: other programs, and shared "
        "memory that no trainer has mapped. Good: flat. Bad: rising: something unwatched grows.",
    ),
)

RANKS = [
    table(
        "Distributed runs",
        [
            verdict(WORST_VERDICT_OF_RANKS, "Worst verdict", 130),
            Column("Trainer", label="trainer"),
            Column("Run", label="run"),
            Column("job", label="job", hidden=True),
            Column("Ranks", RANK_COUNT, COUNT, width=60),
            Column("Of", label="world_size", width=50),
            Column("Leaking", LEAKING_RANKS, COUNT, width=80),
            Column("Memory", MEMORY_OF_RANKS, BYTES, width=90),
            Column("Largest", LARGEST_RANK, BYTES, width=90),
            Column("Smallest", SMALLEST_RANK, BYTES, width=90),
        ],
        "The ranks of each run together; which of them leaks is in the first table. Good: as many ranks as "
        "the run has, none leaking, the largest as large as the smallest.",
        empty=NO_RANKS,
        sort_by="Worst verdict",
    )
]

ENDED = [
    table(
        "Ended in this range",
        [
            *TRAINER,
            Column("Ended", ENDED_AT, AGO, width=140),
            verdict(LAST_VERDICT, "Last verdict"),
            Column("Last memory", LAST_MEMORY, BYTES, width=110),
        ],
        "Processes that ended in the time range, the latest first, with what was last known of each. "
        "Click a name to open its page.",
        empty=NOBODY_ENDED,
        sort_by="Ended",
    )
]

DASHBOARD = Dashboard(
    uid="heapwatch-fleet",
    description="Which trainer leaks, what, since when, and how long has it got?",
    rows=[
        Row("", [GLANCE, [TRAINERS], [MEMORY, VERDICT_LINES]]),
        Row("Over time", OVER_TIME),
        Row("Alerts and cleanups", [[firing_alerts(width=18, height=8), cleanups()]]),
        Row("Ended trainers", [ENDED], collapsed=True),
        Row("Ranks", [RANKS], collapsed=True),
    ],
)
