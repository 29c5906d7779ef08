"""The simulated world: bodies, entities, events."""

from ..promql import TRAINER, min_by, select, sum_by, total
from .recorded import growth, limits

# Physics world.
_BODIES = select("trainer_bodies")
BODIES_BY_TYPE = sum_by("type", _BODIES)
BODIES = sum_by(TRAINER, _BODIES)
BODIES_SUM = total(_BODIES)
STATIC_BODIES = sum_by(TRAINER, select("trainer_bodies", type="static"))
UNKNOWN_BODIES = sum_by(TRAINER, select("trainer_bodies", type="unknown"))
UNKNOWN_BODIES_SUM = total(UNKNOWN_BODIES)
BODIES_GROWTH = sum_by(f"{TRAINER}, component", growth("bodies", 'component!="all"'))
BODIES_GROWTH_SUM = total(BODIES_GROWTH)
BODY_LIMITS_SUM = sum_by("severity", limits("bodies", "all"))
BODY_LIMITS = min_by("severity", limits("bodies", "all"))
FOOD_LIMITS = min_by("severity", limits("entities", "food_sources"))
STATIC_BODY_LIMITS = min_by("severity", limits("bodies", "static"))
ENTITIES = sum_by(f"{TRAINER}, type", select("trainer_entities"))
ENTITIES_SUM = total(select("trainer_entities"))
ENTITIES_GROWTH = sum_by(f"{TRAINER}, component", growth("entities"))
_LIST = f"{TRAINER}, list"
EVENTS = sum_by(_LIST, select("trainer_event_list_items"))
EVENTS_SUM = total(EVENTS)
EVENTS_GROWTH = sum_by(f"{TRAINER}, component", growth("events"))
EVENTS_CAPACITY = sum_by(_LIST, select("trainer_event_list_capacity_items"))
EVENTS_FILL = f"{EVENTS} / {EVENTS_CAPACITY}"
FULLEST_EVENTS = f"max({EVENTS_FILL})"
