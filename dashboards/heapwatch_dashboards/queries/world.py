"""The simulated world: bodies, entities, events."""

from ..promql import TRAINER, max_by, min_by, of_one, select, sum_by
from ..verdicts import GROWING, LEAK, OVER
from .recorded import aged, growth, limits, slope

# Physics world.
_BODIES = select("trainer_bodies")
BODIES_BY_TYPE = sum_by("type", _BODIES)
BODIES = sum_by(TRAINER, _BODIES)
STATIC_BODIES = sum_by(TRAINER, select("trainer_bodies", type="static"))
UNKNOWN_BODIES = sum_by(TRAINER, select("trainer_bodies", type="unknown"))
BODIES_GROWTH = sum_by(f"{TRAINER}, component", growth("bodies", 'component!="all"'))
BODY_LIMITS_OF_ONE = of_one(min_by("severity", limits("bodies", "all")))
BODY_LIMITS = min_by("severity", limits("bodies", "all"))
FOOD_LIMITS = min_by("severity", limits("entities", "food_sources"))
STATIC_BODY_LIMITS = min_by("severity", limits("bodies", "static"))
ENTITIES = sum_by(f"{TRAINER}, type", select("trainer_entities"))
ENTITIES_GROWTH = sum_by(f"{TRAINER}, component", growth("entities"))
_LIST = f"{TRAINER}, list"
EVENTS = sum_by(_LIST, select("trainer_event_list_items"))
EVENTS_GROWTH = sum_by(f"{TRAINER}, component", growth("events"))

# What is in the world, one row a thing.
_THING = f"{TRAINER}, resource, component"
_IN_WORLD = 'resource=~"bodies|entities|events"'
_LEVEL = select("job:trainer_resource:level", _IN_WORLD)
NOW = max_by(_THING, _LEVEL)
GROWTH = max_by(_THING, aged(10, slope(_IN_WORLD)))
CAPACITY = max_by(_THING, select("job:trainer_resource:capacity", resource="events"))
FILL = f"{NOW} / {CAPACITY}"
_LEAKS = select("ALERTS", _IN_WORLD, kind="leak", alertstate="firing")
_OVER = select("ALERTS", _IN_WORLD, kind="threshold", alertstate="firing")
_FAST = select("ALERTS", _IN_WORLD, kind="growth", alertstate="firing")
_WORSE = f"{LEAK} + 0 * {_LEAKS} or {OVER} + 0 * {_OVER} or {GROWING} + 0 * {_FAST}"
_JUDGED = f"on (job, instance) group_left () ({select('job:trainer_verdict:state')} > bool 0)"
STATE = max_by(_THING, f"({_WORSE}) and on ({_THING}) {_LEVEL} or 0 * {_LEVEL} + {_JUDGED}")
