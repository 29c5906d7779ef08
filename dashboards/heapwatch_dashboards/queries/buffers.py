"""Replay buffers and named objects."""

from ..promql import TRAINER, in_range, or_zero, select, sum_by, total
from .recorded import growth, growth_per_cycle
from .trainers import MEMORY_LIMIT, RESIDENT

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
_TO_FILL = sum_by(TRAINER, f"clamp_min({BUFFER_CAPACITY_BYTES} - {BUFFER_BYTES}, 0)")
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
OBJECT_GROWTH_IN_RANGE = sum_by(_OBJECT, in_range("delta", select("trainer_object_size_bytes")))
OBJECT_GROWTH_PER_CYCLE = growth_per_cycle("object_size")
