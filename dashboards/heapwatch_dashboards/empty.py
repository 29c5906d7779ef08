"""The text of a panel whose queries find nothing, and what that means.

The meaning depends on the series that is absent, so the text follows from the panel's first query.
"""

import re
from typing import NamedTuple


class Empty(NamedTuple):
    """Shown instead of data (Grafana's `noValue`); `because` explains it in the panel's description."""

    says: str
    because: str

    def explained(self, description: str) -> str:
        """The description, and under it what it means when the panel is empty."""
        return f"{description}\n\n“{self.says}”: {self.because}."


NO_TRAINER = Empty("No trainer now", "Prometheus has no current sample of a chosen trainer")
HOW_TO_ADD = Empty(
    "No trainer yet. Add one:  heapwatch run train.py",
    'Prometheus scrapes no trainer; `import heapwatch; heapwatch.start("my-trainer")` does it, too',
)
NOBODY_ENDED = Empty("No trainer ended in this range", "those that are there are in the first table")
NOTHING_GROWS = Empty(
    "Nothing known to grow", "neither the explanation nor an alert names anything; it may be too early"
)
NO_WORLD = Empty(
    "No physics world, entities or event lists watched", "there are none, or they are not watched"
)
NOTHING_FIRES = Empty("Nothing fires", "no alert fires now for the chosen trainers")
NOTHING_FIRED = Empty("Nothing fired in this range", "no alert's condition held for long enough")
NO_LIMIT = Empty("No limit known", "it could not be read, or the trainer ended")
NO_PROGRESS = Empty("No progress counted", "no trainer reports steps, episodes, epochs or generations")
NO_RANKS = Empty("No ranks", "no chosen trainer is a rank of a distributed run")
NO_GPU = Empty("No GPU now", "no chosen trainer has one that it can read, or it ended")
NO_DEVICE_FILLS = Empty("No device fills up", "none will be full within 3 days, or it is too early to say")
NO_TORCH_GPU = Empty("No torch on a GPU now", "no chosen trainer has allocated memory there, or it ended")

# The first pattern found in a panel's first query decides; what is about one series comes before its prefix.
_MEANINGS = (
    # Judgement.
    (r"job:trainer_verdict", *NO_TRAINER),
    (r"ALERTS", "No alert in this range", "nothing was pending and nothing fired"),
    (
        r"time_to_limit",
        "Too early, or not within 3 days",
        "no growth that leads to the limit soon, or not watched for long enough to say",
    ),
    (
        r"growth_per_cycle",
        "No growth per cycle known",
        "known after several episodes, epochs or generations of what is watched",
    ),
    (r"since start", "No baseline yet", "no chosen trainer has come to its first safe point, or it ended"),
    (r"trainer_cleanup", "No cleanup in this range", "no cleanup was asked for"),
    # The stack.
    (
        r"heapwatch_receiver_(actions|alert_to)",
        "No action in this range",
        "the receiver requested no cleanup",
    ),
    (r"heapwatch_receiver_alerts_suppressed", "None in this range", "the receiver acted on every alert"),
    (r"heapwatch_receiver_cleanup_no_effect.*\) > 0", "None known", "every last cleanup of a trainer helped"),
    (
        r"job:machine_memory",
        "Not known",
        "no receiver runs, or a trainer does not say on which machine it is",
    ),
    (r"job:stack:", "Not known", "Prometheus scrapes no service of the stack"),
    (r"heapwatch_receiver_", "No receiver", "Prometheus has no sample of one"),
    (r"prometheus_", "No Prometheus", "it is not chosen, or does not scrape itself"),
    (
        r"trainer_exporter_safe_point",
        "No safe point yet",
        "no chosen trainer has let the watcher work in its loop",
    ),
    (r"trainer_exporter_(sample|budget)", "No samplers", "the chosen trainers sample no live objects"),
    (r"process_.*service!=", "No service", "no service of the stack is chosen, or none was scraped"),
    (r"\b(up|scrape_\w+)\{", "No target", "Prometheus scrapes nothing that is chosen"),
    (
        r"growth_per_minute|deriv\(job:trainer_resource:level",
        "No growth known",
        "nothing of it is watched, or the trainer is younger than ten minutes, or ended",
    ),
    # What a trainer may have, or have not.
    (r'trainer_bodies|resource="bodies"', "No physics world watched", "there is none, or it is not watched"),
    (
        r'trainer_entities|resource="entities"',
        "No entities watched",
        "there are none, or they are not watched",
    ),
    (r"trainer_event_list_capacity", "No bounded list", "no watched event list declares a bound"),
    (
        r'trainer_event_list|resource="events"',
        "No event lists watched",
        "there are none, or they are not watched",
    ),
    (r"^(?!.*unless).*trainer_buffer_capacity", "No bounded buffer", "no watched buffer declares a capacity"),
    (r"trainer_buffer_", "No buffers watched", "there are none, or they are not watched"),
    (
        r'trainer_objects|resource="objects"',
        "No classes watched",
        "the chosen trainers count the objects of no class",
    ),
    (r"trainer_object_size", "No named objects watched", "the chosen trainers measure the size of no object"),
    (r"trainer_phase_", "No phases watched", "the chosen trainers mark no phases, or none ended yet"),
    (r'unit!~"epoch\|generation"', *NO_PROGRESS),
    (
        r"epoch\|generation",
        "No cycles counted",
        "the chosen trainers report neither episodes nor epochs nor generations",
    ),
    (r"progress", *NO_PROGRESS),
    (r'trainer_gpu_memory_(allocated|reserved)|resource="gpu_memory"', *NO_TORCH_GPU),
    (r"trainer_gpu_", *NO_GPU),
    (r"trainer_memory_limit", *NO_LIMIT),
    (
        r"trainer_(allocator|python)|process_open_fds",
        "Not read on this platform",
        "Python or its C library does not provide it",
    ),
    (r"", *NO_TRAINER),
)


def meaning(expression: str) -> Empty:
    """What it means that this query finds nothing."""
    return next(
        Empty(says, because) for pattern, says, because in _MEANINGS if re.search(pattern, expression)
    )
