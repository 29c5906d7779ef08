"""What a panel says when its queries find nothing, and what that means: no panel just has no data."""

from typing import NamedTuple


class Empty(NamedTuple):
    """Shown instead of data (Grafana's `noValue`); `because` explains it in the panel's description."""

    says: str
    because: str

    def explained(self, description: str) -> str:
        """The description, and under it what it means when the panel is empty."""
        return f"{description}\n\n“{self.says}”: {self.because}."


# Who is watched.
NO_TRAINER = Empty("No trainer", "Prometheus has no sample of a chosen trainer in the time range")
NO_LIMIT = Empty("No limit known", "the trainer cannot read a container limit or the physical memory")
NO_PROGRESS = Empty("No progress counted", "no trainer reports steps, episodes, epochs or generations")
NOT_READ = Empty("Not read on this platform", "the trainer's Python or C library does not tell")

# How it is judged.
NO_VERDICT = Empty("No verdict yet", "the rules have not judged a chosen trainer in the time range")
WARMING_UP = Empty("Warming up", "too few samples yet to tell growth from noise")
NO_SUSPECT = Empty("No suspect", "no leak of memory is confirmed that a component could explain")
NO_FORECAST = Empty("No forecast", "memory does not keep rising to its limit, or not yet for half an hour")
NOT_SOON = Empty("Not within three days", "no forecast of the time range was shorter than that")
NOTHING_FIRES = Empty("Nothing fires", "no alert fires now for the chosen trainers")
NO_ALERT = Empty("No alert in this range", "nothing was pending and nothing fired")
NOTHING_FIRED = Empty("Nothing fired in this range", "no alert's condition held for long enough")
NO_CLEANUP = Empty("No cleanup in this range", "the chosen trainers were asked for none")

# What a trainer may have, or have not.
NO_WORLD = Empty("No physics world watched", "the chosen trainers have none, or do not watch it")
NO_ENTITIES = Empty("No entities watched", "the chosen trainers have none, or do not watch them")
NO_EVENTS = Empty("No event lists watched", "the chosen trainers have none, or do not watch them")
NO_BOUNDED_LIST = Empty("No bounded list", "no watched event list declares a bound")
NO_BUFFERS = Empty("No buffers watched", "the chosen trainers have none, or do not watch them")
NO_BOUNDED_BUFFER = Empty("No bounded buffer", "no watched buffer declares a capacity")
NO_OBJECTS = Empty("No classes watched", "the chosen trainers count the objects of no class")
NO_SIZES = Empty("No named objects watched", "the chosen trainers measure the size of no object")
NO_PHASES = Empty("No phases watched", "the chosen trainers mark no phases, or none ended yet")
NO_CYCLES = Empty("No cycles counted", "the chosen trainers report neither epochs nor generations")
FEW_CYCLES = Empty("Too few cycles yet", "growth per cycle is known after several epochs or generations")
NO_GPU = Empty("No GPU on this trainer", "no chosen trainer has one that it can read")
NO_TORCH_GPU = Empty("No GPU used through torch", "no chosen trainer has allocated memory on one")
NO_GPU_FORECAST = Empty("No forecast", "there is no GPU, or its memory does not keep rising for half an hour")

# What was done, by whom, and who looks after that.
NO_ACTION = Empty("No action in this range", "the receiver asked for no cleanup, or does not run")
NOTHING_LEFT_ALONE = Empty(
    "None in this range", "the receiver left no alert without an action, or does not run"
)
ALL_HELPED = Empty("None known", "the receiver knows of no trainer whose last cleanup did not help")
NO_RECEIVER = Empty("No receiver", "Prometheus has no sample of one in the time range")
NO_TARGET = Empty("No target", "Prometheus has scraped nothing that is chosen")
NO_SERVICE = Empty("No service", "no service of the stack is chosen, or none was scraped")
NO_PROMETHEUS = Empty("No Prometheus", "it is not chosen, or does not scrape itself")
NO_SAMPLERS = Empty("No samplers", "the chosen trainers sample no live objects")
NO_SAFE_POINT = Empty("No safe point yet", "no chosen trainer has let the watcher work in its loop")
