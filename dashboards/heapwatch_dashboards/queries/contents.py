"""What a trainer keeps: the bodies, entities and events of its world, replay buffers and named objects."""

from ..colors import GROWING, LEAK, OVER
from ..promql import (
    TRAINER,
    aged,
    growth,
    growth_per_cycle,
    in_range,
    limits,
    max_by,
    min_by,
    of_one,
    or_zero,
    present,
    select,
    slope,
    sum_by,
    total,
)
from .trainers import MEMORY_LIMIT, RESIDENT

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
WORLD_NOW = max_by(_THING, _LEVEL)
WORLD_GROWTH = max_by(_THING, aged(10, slope(_IN_WORLD)))
WORLD_CAPACITY = max_by(_THING, select("job:trainer_resource:capacity", resource="events"))
WORLD_FILL = f"{WORLD_NOW} / {WORLD_CAPACITY}"
_LEAKS = select("ALERTS", _IN_WORLD, kind="leak", alertstate="firing")
_OVER = select("ALERTS", _IN_WORLD, kind="threshold", alertstate="firing")
_FAST = select("ALERTS", _IN_WORLD, kind="growth", alertstate="firing")
_WORSE = f"{LEAK} + 0 * {_LEAKS} or {OVER} + 0 * {_OVER} or {GROWING} + 0 * {_FAST}"
_JUDGED = f"on (job, instance) group_left () ({select('job:trainer_verdict:state')} > bool 0)"
WORLD_STATE = max_by(_THING, f"({_WORSE}) and on ({_THING}) {_LEVEL} or 0 * {_LEVEL} + {_JUDGED}")

# Buffers.
_BUFFER = f"{TRAINER}, buffer"
_ITEMS = select("trainer_buffer_items")
BUFFER_ITEMS = sum_by(_BUFFER, _ITEMS)
BUFFER_CAPACITY_ITEMS = sum_by(_BUFFER, select("trainer_buffer_capacity_items"))
BUFFER_BYTES = sum_by(_BUFFER, select("trainer_buffer_bytes"))
BUFFER_CAPACITY_BYTES = sum_by(_BUFFER, select("trainer_buffer_capacity_bytes"))
BUFFER_FILL = f"{BUFFER_ITEMS} / {BUFFER_CAPACITY_ITEMS}"
BUFFER_ITEM_BYTES = f"{BUFFER_BYTES} / ({BUFFER_ITEMS} > 0)"
BUFFER_TIME_TO_FULL = (
    f"({BUFFER_CAPACITY_ITEMS} - {BUFFER_ITEMS} > 0) / ({sum_by(_BUFFER, f'deriv({_ITEMS}[30m])')} > 0)"
)
BUFFER_BYTES_SUM = total(BUFFER_BYTES)
BUFFER_CAPACITY_SUM = total(BUFFER_CAPACITY_BYTES)
UNBOUNDED_BUFFERS = f"{BUFFER_ITEMS} unless {BUFFER_CAPACITY_ITEMS}"
UNBOUNDED_BUFFERS_COUNT = or_zero(f"count({UNBOUNDED_BUFFERS})", f"count({BUFFER_ITEMS})")
_TO_FILL = max_by(TRAINER, select("job:trainer_memory:to_fill_bytes"))
USED_WHEN_FULL = f"({RESIDENT} + {_TO_FILL}) / {MEMORY_LIMIT}"
MOST_USED_WHEN_FULL = f"max({USED_WHEN_FULL})"
ATTACHED_TENSORS = sum_by(_BUFFER, select("trainer_buffer_attached_tensors"))
ATTACHED_TENSORS_SUM = total(ATTACHED_TENSORS)

# Objects.
OBJECTS = sum_by(f"{TRAINER}, type", select("trainer_objects"))
OBJECTS_GROWTH = sum_by(f"{TRAINER}, component", growth("objects"))
_OBJECT = f"{TRAINER}, object"
OBJECT_SIZES = sum_by(_OBJECT, select("trainer_object_size_bytes"))
OBJECT_SIZES_SUM = total(OBJECT_SIZES)
OBJECT_GROWTH_IN_RANGE = present(sum_by(_OBJECT, in_range("delta", select("trainer_object_size_bytes"))))
OBJECT_GROWTH_PER_CYCLE = growth_per_cycle("object_size")
