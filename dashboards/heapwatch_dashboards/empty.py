"""The text of a panel whose queries find nothing (Grafana's `noValue`).

Its reason is the series that is absent, so the text follows from the panel's first query.
"""

import re

NO_TRAINER = "No trainer now"
HOW_TO_ADD = "No trainer yet. Add one:  heapwatch run train.py"
NO_MACHINE = "No machine now"
HOW_TO_WATCH = "No machine yet. Watch one:  heapwatch node"
NOBODY_ENDED = "No trainer ended in this range"
NOTHING_GROWS = "Nothing known to grow"
NO_WORLD = "No physics world, entities or event lists watched"
NOTHING_FIRES = "Nothing fires"
NOTHING_FIRED = "Nothing fired in this range"
NO_LIMIT = "No limit known"
NO_RANKS = "No ranks of a distributed run"
NO_GPU = "No GPU now"
NO_TORCH_GPU = "No torch on a GPU now"

# The first pattern found in a panel's first query decides; what is about one series comes before its prefix.
_TEXTS = {
    # Judgement.
    r"growth_per_minute|60 \* deriv": "No growth known",
    r"trainer_memory_verdict": NO_TRAINER,
    r"ALERTS": "No alert in this range",
    r"time_to_limit": "Too early, or not within a week",
    r"growth_per_cycle": "No growth per cycle known yet",
    r"since start": "No baseline yet",
    r"trainer_cleanup": "No cleanup in this range",
    # The stack.
    r"heapwatch_receiver_(actions|alert)": "No action in this range",
    r"heapwatch_receiver_": "No receiver",
    r"job:machine_memory|job:stack:": "Not known",
    r"machine_group_kills": "No kill counted in this range",
    r"machine_": NO_MACHINE,
    r"prometheus_": "No Prometheus",
    r"trainer_exporter_(sample|budget|safe_point)": "No trainer samples live objects",
    r"process_.*service!=": "No service",
    r"\bup\{": "No target",
    # What a trainer may have, or have not.
    r'trainer_bodies|resource="bodies"': "No physics world watched",
    r'trainer_entities|resource="entities"': "No entities watched",
    r'trainer_event_list|resource="events"': "No event lists watched",
    r"^(?!.*unless).*trainer_buffer_capacity": "No bounded buffer",
    r"trainer_buffer_": "No buffers watched",
    r'trainer_objects|resource="objects"': "No classes watched",
    r"trainer_object_size": "No named objects watched",
    r"trainer_phase_": "No phases watched",
    r"progress": "No progress counted",
    r'trainer_gpu_memory_(allocated|reserved)|resource="gpu_memory"': NO_TORCH_GPU,
    r"trainer_gpu_": NO_GPU,
    r"trainer_memory_limit": NO_LIMIT,
    r"trainer_allocator": "Not read on this platform",
}


def meaning(expression: str) -> str:
    """What it means that this query finds nothing."""
    return next((text for pattern, text in _TEXTS.items() if re.search(pattern, expression)), NO_TRAINER)
