"""What grows in a trainer, by the names that its explanation gives; the rest by resource and component.

A row has the labels `what` (a path from a root of the program, or a resource and its component), `type`,
`site` (file and line) and `remedy`. The first table of Trainer and of Fleet show the same rows.
"""

from collections.abc import Callable, Sequence

from heapwatch.judge.verdict import WORDS

from ..colors import CODES, GROWING, LEAK
from ..promql import PROCESS, SAME_PROCESS, STEP, current, growth, in_life, max_by, min_by, select, sum_by

_KEY = f"{PROCESS}, what, type"
_ROW = f"{_KEY}, site, remedy"


def by_word(*words: str) -> str:
    """The code of each trainer's verdict, if it is one of these; missed scrapes are bridged."""
    said = {word: select("trainer_memory_verdict", verdict=word) for word in words}
    return " or ".join(
        f"{CODES[word]:g} * (last_over_time({series}[5m]) == 1)" for word, series in said.items()
    )


# Paths. One whose bytes have been level for ten minutes no longer grows, whatever its growth was before.
_IS_LEAK = select("trainer_growing_path_leak")
_RECENT = f"(60 * deriv({select('trainer_growing_path_bytes')}[10m]) {SAME_PROCESS})"
_STATED = select("trainer_growing_path_growth_bytes_per_minute")
_GROWS = f"({_IS_LEAK} == 0 unless ignoring (site, remedy) ({_RECENT} < 0.1 * {_STATED}))"
# What is no leak and has a bound fits or does not; the rest has the word of the whole, unless that is a leak.
_WORD = max_by(PROCESS, by_word(*(word for word in WORDS if word != "leak")))
_FITS = f"ignoring (site, remedy) {select('trainer_growing_path_fits')}"
_BOUNDED = (
    f"{CODES['will not fit']:g} + 0 * ({_GROWS} and {_FITS} == 0)"
    f" or {CODES['filling']:g} + 0 * ({_GROWS} and {_FITS} == 1)"
    f" or {CODES['filling']:g} + 0 * ({_GROWS} and {select('trainer_growing_path_leak', kind='buffer')})"
)
# What leaks fastest in each trainer, by its name; and what did last in one that was lost, or does not answer.
FASTEST_LEAK = (
    f"topk by ({PROCESS}) (1, ({_IS_LEAK} == 1) * on ({PROCESS}, path, type, kind) group_left () {_STATED})"
)
GONE = select("job:trainer:gone")
LAST_LEAK = f"({select('job:trainer_known:leak_bytes_per_minute')} and on (job, instance) {GONE})"
# Leaks and alerts: those of memory only where nothing of it has a name.
_THINGS, _MEMORY = 'resource!~"memory|object_size"', 'resource=~"memory|object_size"'


def _nameless(metric: str, *matchers: str) -> str:
    of_memory = f"{select(metric, _MEMORY, *matchers)} unless on (job, instance) {_IS_LEAK}"
    return f"({select(metric, _THINGS, *matchers)} or {of_memory})"


def _of_path(expression: str) -> str:
    """What has no path, such as a level or a type, is called by its type, once."""
    called = f'label_replace({expression}, "what", "$1", "path", "(.*)")'
    return f'label_replace({called}, "type", "", "kind", "level|type")'


def _of_alert(expression: str) -> str:
    return f'label_join({expression}, "what", " ", "resource", "component")'


def _path_state(leaks: str, grows: str) -> str:
    """The state of each path: `leaks` is 1 where it leaks, `grows` 0 where it grows and is no leak."""
    return (
        f"{LEAK} * {leaks} or {LEAK} + 0 * {LAST_LEAK} or {_BOUNDED}"
        f" or {grows} + on (job, instance) group_left () {_WORD} or {GROWING} + {grows}"
    )


LEAKING = "job:trainer_leak:current"
# What is retained grows: it has an alert of that kind. A pending alert makes no verdict, and so no row.
OF_LEAK, _OF_GROWTH = 'reason!="retained"', ('kind="growth"', 'alertstate="firing"')
_REST = _of_alert(
    f"({LEAK} + 0 * {_nameless(LEAKING, OF_LEAK)} or {GROWING} + 0 * {_nameless('ALERTS', *_OF_GROWTH)})"
)
_LEAKS = f"({_IS_LEAK} == 1)"
_ROWS = f"{_of_path(_path_state(_LEAKS, _GROWS))} or {_REST}"
STATE = current(max_by(_ROW, _ROWS))


def _column(of_path: str, of_alert: str, combine: Callable[[str, str], str] = max_by) -> str:
    """A value of each row; the two have the labels of a path, and of a leak or an alert."""
    parts = ((_of_path, of_path), (_of_alert, of_alert))
    values = " or ".join(label(expression) for label, expression in parts if expression)
    return current(combine(_KEY, f"({values}) and on ({_KEY}) ({_ROWS})"))


_SIZES = ("memory", "gpu_memory", "object_size")
_COUNTS = ("bodies", "entities", "events", "buffer", "objects")


def _growth(resources: Sequence[str]) -> str:
    """Of what leaks as its judge says; of the rest over ten minutes."""
    names = "|".join(resources)
    leaking = select(LEAKING, f'resource=~"{names}"')
    thing = "job, instance, resource, component"
    return f"60 * {max_by(thing, leaking)} or on ({thing}) {growth(*resources)}"


_ITEMS = select("trainer_growing_path_items")
BYTES_PER_MINUTE = _column(f"{_STATED} or {LAST_LEAK}", _growth(_SIZES))
ITEMS_PER_MINUTE = _column(f"60 * {in_life('deriv', _ITEMS, '10m')}", _growth(_COUNTS))
SHARE = _column(select("trainer_growing_path_share_ratio"), "")
_ALERT_BEGAN = select("ALERTS_FOR_STATE", 'kind=~"leak|growth"')
_SEEN = f"min_over_time(timestamp({_IS_LEAK})[$__range:{STEP}])"
_START = f"+ on (job, instance) group_left () {select('job:trainer_process:start')}"
# Not before the process: another one may have had the same path at its address.
_NAMED = f"{_SEEN} and (0 * {_SEEN} {_START}) <= {_SEEN} or 0 * {_SEEN} {_START} or {_SEEN}"
SINCE = _column(f"1000 * ({_NAMED})", f"1000 * {_ALERT_BEGAN}", min_by)


def of_rows(of_trainer: str) -> str:
    """A value of the trainer in each of its rows."""
    return f"0 * {max_by(_KEY, STATE)} + on (job, instance) group_left () ({of_trainer})"


def _faster_first(paths: str) -> str:
    """The same, and a little more for a path that grows faster: no two states come that close."""
    rate = f"1e-15 * clamp_min({_STATED}, 0)"
    return f"({paths} + on ({PROCESS}, path, type, kind) group_left () {rate} or {paths})"


# The row of each trainer that is worst and grows fastest.
_BY_RATE = _of_path(_path_state(_faster_first(_LEAKS), _faster_first(_GROWS)))
TOP = f"topk by ({PROCESS}) (1, {current(max_by(_ROW, f'{_BY_RATE} or {_REST}'))})"

# Bytes of declared buffers and objects.
_BUFFERS = f"last_over_time({select('trainer_buffer_bytes')}[1m])"
_OBJECTS = f"last_over_time({select('trainer_object_size_bytes')}[1m])"
_EXPLAINED = sum_by(
    f"{PROCESS}, component",
    f'label_replace({_BUFFERS}, "component", "$1", "buffer", "(.*)")'
    f' or label_replace({_OBJECTS}, "component", "$1", "object", "(.*)")',
)

# Memory by what holds it; what is declared is known by its own series, under the last name of its path. A
# level is no part of the memory: it may be all of it.
_LAST_NAME = '"component", "$1", "path", "(?:.*\\\\.)?([^.\\\\[]+).*"'
# A missed scrape is bridged, as it is in the memory that it is a part of.
_ON_HOST = select("trainer_growing_path_bytes", 'kind!~"gpu|level|worker"')
_PATH_BYTES = f"last_over_time({_ON_HOST}[1m])"
_HELD = f"(label_replace({_PATH_BYTES}, {_LAST_NAME}) unless on (job, instance, component) {_EXPLAINED})"
_HERE = select("job:trainer_resource:level", resource="memory", component="trainer")
TRAINER_ALONE = sum_by(PROCESS, _HERE)
_NOTHING = f"0 * {TRAINER_ALONE}"
HELD = f"(({sum_by(PROCESS, _EXPLAINED)} or {_NOTHING}) + ({sum_by(PROCESS, _HELD)} or {_NOTHING}))"
# Of what lies on a GPU, or is not touched, as much as can be in the memory: bands never pass the whole.
_IN_MEMORY = f"* on (job, instance) group_left () clamp_max({TRAINER_ALONE} / ({HELD} > 0), 1)"
DECLARED = sum_by("component", f"{_EXPLAINED} {_IN_MEMORY}")
PATHS = sum_by("path", f"{_HELD} {_IN_MEMORY}")
