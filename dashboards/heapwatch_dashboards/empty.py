"""The text of a panel whose queries find nothing, and what that means.

The meaning depends on the series that is absent, so the text follows from the panel's first query.
"""

import re
from typing import NamedTuple


class Empty(NamedTuple):
    """Shown instead of data (Grafana's `noValue`); `because` explains it in the panel's description."""

    says: str
    because: str = "there is none, or it is not watched"

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
    "Nothing known to grow", "nothing is named by explanation or alert; it may be too early"
)
NO_WORLD = Empty("No physics world, entities or event lists watched")
NOTHING_FIRES = Empty("Nothing fires", "no alert fires now for the chosen trainers")
NOTHING_FIRED = Empty("Nothing fired in this range", "no alert's condition held for long enough")
NO_LIMIT = Empty("No limit known", "it could not be read, or the trainer ended")
NO_PROGRESS = Empty("No progress counted", "no trainer reports steps, episodes, epochs or generations")
NO_RANKS = Empty("No ranks", "no chosen trainer is a rank of a distributed run")
NO_GPU = Empty("No GPU now", "no chosen trainer has one that it can read, or it ended")
NO_DEVICE_FILLS = Empty("No device fills up", "none will be full within 3 days, or it is too early to say")
NO_TORCH_GPU = Empty("No torch on a GPU now", "no chosen trainer has allocated memory there, or it ended")

# The first pattern found in a panel's first query decides; what is about one series comes before its prefix.
_MEANINGS = {
    # Judgement.
    r"job:trainer_verdict": NO_TRAINER,
    r"ALERTS": Empty("No alert in this range", "nothing was pending and nothing fired"),
    r"time_to_limit": Empty("Too early, or not within 3 days", "no growth leads to the limit soon"),
    r"growth_per_cycle": Empty("No growth per cycle known", "it takes several cycles of what is watched"),
    r"since start": Empty("No baseline yet", "no chosen trainer has come to a safe point, or it ended"),
    r"trainer_cleanup": Empty("No cleanup in this range", "no cleanup was asked for"),
    # The stack.
    r"heapwatch_receiver_(actions|alert_to)": Empty("No action in this range", "no cleanup was requested"),
    r"heapwatch_receiver_alerts_suppressed": Empty("None in this range", "every alert was acted on"),
    r"heapwatch_receiver_cleanup_no_effect.*\) > 0": Empty("None known", "every trainer's last one helped"),
    r"job:machine_memory": Empty("Not known", "no receiver runs, or no trainer says where it runs"),
    r"job:stack:": Empty("Not known", "Prometheus scrapes no service of the stack"),
    r"heapwatch_receiver_": Empty("No receiver", "Prometheus has no sample of one"),
    r"prometheus_": Empty("No Prometheus", "it is not chosen, or does not scrape itself"),
    r"trainer_exporter_safe_point": Empty("No safe point yet", "no chosen trainer has come to one"),
    r"trainer_exporter_(sample|budget)": Empty("No samplers", "no chosen trainer samples live objects"),
    r"process_.*service!=": Empty("No service", "no service of the stack is chosen, or none was scraped"),
    r"\bup\{": Empty("No target", "Prometheus scrapes nothing that is chosen"),
    r"growth_per_minute|deriv\(job:trainer_resource:level": Empty(
        "No growth known", "nothing of it is watched, or the trainer is younger than ten minutes, or ended"
    ),
    # What a trainer may have, or have not.
    r'trainer_bodies|resource="bodies"': Empty("No physics world watched"),
    r'trainer_entities|resource="entities"': Empty("No entities watched"),
    r'trainer_event_list|resource="events"': Empty("No event lists watched"),
    r"^(?!.*unless).*trainer_buffer_capacity": Empty("No bounded buffer", "no buffer declares a capacity"),
    r"trainer_buffer_": Empty("No buffers watched"),
    r'trainer_objects|resource="objects"': Empty("No classes watched", "the objects of no class are counted"),
    r"trainer_object_size": Empty("No named objects watched", "the size of no object is measured"),
    r"trainer_phase_": Empty("No phases watched", "none is marked, or none ended yet"),
    r'unit!~"epoch\|generation"': NO_PROGRESS,
    r"epoch\|generation": Empty("No cycles counted", "no episodes, epochs or generations are reported"),
    r"progress": NO_PROGRESS,
    r'trainer_gpu_memory_(allocated|reserved)|resource="gpu_memory"': NO_TORCH_GPU,
    r"trainer_gpu_": NO_GPU,
    r"trainer_memory_limit": NO_LIMIT,
    r"trainer_allocator": Empty("Not read on this platform", "its C library does not provide it"),
}


def meaning(expression: str) -> Empty:
    """What it means that this query finds nothing."""
    return next((said for pattern, said in _MEANINGS.items() if re.search(pattern, expression)), NO_TRAINER)
