"""Random sequences of the whole API, with sources that raise, answer anything, change and die.

Nothing crashes, and no number is wrong.
"""

import gc
import math
from collections import deque

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

import heapwatch
from heapwatch.runtime.exposition import Snapshot

SEQUENCES = 50

NAMES = st.one_of(
    st.sampled_from(["food_sources", "death", "replay", "policy.state_dict"]),
    st.text(max_size=8),
    st.none(),
    st.integers(),
)
ANY_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.just(10**400),
    st.floats(),
    st.text(max_size=3),
    st.just(object()),
    st.lists(st.integers(), max_size=3),
)

COUNTS = {"trainer_entities", "trainer_event_list_items", "trainer_bodies", "trainer_buffer_items"}


class Shifting:
    """A source whose answer a test changes: any value, an error, a container that changes while read."""

    def __init__(self):
        self.answer = 3
        self.error = None
        self.items = {1: 1}

    def __call__(self):
        if self.error is not None:
            raise self.error
        return self.answer

    def mutating(self):
        for key in self.items:
            self.items[key + 1] = 1
        return len(self.items)


class Trainer(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.watch = heapwatch.Watch("sequences", interval=1e-6, budget=1.0)
        self.shifting = Shifting()
        self.containers = [deque([1, 2], maxlen=4), [1], {"a": 1}]
        self.steps = self.refused = 0

    def declared(self, declare, *arguments, **options):
        try:
            declare(*arguments, **options)
        except ValueError:
            self.refused += 1

    @rule(name=NAMES)
    def entities_from_a_shifting_source(self, name):
        shifting = self.shifting
        self.declared(self.watch.entities, name, lambda: shifting())

    @rule(name=NAMES, which=st.integers(0, 5))
    def events_from_a_container(self, name, which):
        if which < len(self.containers):
            self.declared(self.watch.events, name, self.containers[which])

    @rule(name=NAMES, source=ANY_VALUES, capacity=ANY_VALUES)
    def events_from_anything(self, name, source, capacity):
        self.declared(self.watch.events, name, source, capacity=capacity)

    @rule(name=NAMES)
    def a_source_that_mutates_what_it_reads(self, name):
        self.declared(self.watch.entities, name, self.shifting.mutating)

    @rule(name=NAMES, source=ANY_VALUES, items=ANY_VALUES)
    def buffers_of_anything(self, name, source, items):
        self.declared(self.watch.buffer, name, source, items=lambda: items, nbytes=lambda: items)

    @rule(name=NAMES, source=ANY_VALUES)
    def sizes_of_anything(self, name, source):
        self.declared(self.watch.size, name, lambda: source)

    @rule(counts=st.dictionaries(NAMES, ANY_VALUES, max_size=4))
    def bodies_as_told(self, counts):
        self.declared(self.watch.bodies, lambda: counts)

    @rule(resource=st.sampled_from(["memory", "bodies", "ram", None]), limit=ANY_VALUES)
    def limits(self, resource, limit):
        self.declared(self.watch.limit, resource, warning=limit)
        self.declared(self.watch.growth_limit, resource, per_minute=limit)

    @rule(answer=ANY_VALUES, error=st.booleans())
    def a_cleanup_function(self, answer, error):
        def clean(action):
            if error:
                raise LookupError("no such pool")
            return answer

        self.watch.on_cleanup(clean)

    @rule(answer=ANY_VALUES)
    def the_source_answers_differently(self, answer):
        self.shifting.answer = answer

    @rule(broken=st.booleans())
    def the_source_breaks_or_recovers(self, broken):
        self.shifting.error = RuntimeError("broken") if broken else None

    @rule()
    def containers_grow(self):
        for container in self.containers:
            if isinstance(container, (list, deque)):
                container.append(0)

    @precondition(lambda self: self.containers)
    @rule()
    def a_container_dies(self):
        self.containers.pop()
        gc.collect(0)

    @rule(times=st.integers(1, 20))
    def steps(self, times):
        for _ in range(times):
            self.watch.step()
        self.steps += times

    @rule(unit=NAMES, count=ANY_VALUES)
    def progress(self, unit, count):
        if unit != "step":
            self.watch.progress(unit, count)

    @rule(name=NAMES, inner=NAMES)
    def phases(self, name, inner):
        with self.watch.phase(name), self.watch.phase(inner):
            pass

    @rule(request=st.sampled_from(["a", "b", None]), action=st.sampled_from(["regular", "emergency"]))
    def cleanups(self, request, action):
        if self.watch._exporter.cleanup_queue.pending() < 10:
            self.watch._exporter.cleanup_queue.submit(action, "test", "http", request)

    @rule()
    def stop(self):
        self.watch.stop()

    @rule()
    def a_scrape(self):
        self.check_what_is_exposed()

    def check_what_is_exposed(self):
        families = self.watch._exporter.exposition.collect()
        text = generate_latest(Snapshot(families)).decode()
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        assert "trainer_info" in {sample.name for sample in samples}
        steps = [
            s.value for s in samples if s.name == "trainer_progress_total" and s.labels["unit"] == "step"
        ]
        assert sum(steps) == self.steps
        counts = [sample.value for sample in samples if sample.name in COUNTS]
        assert all(math.isfinite(count) and count >= 0 for count in counts)

    def teardown(self):
        self.check_what_is_exposed()
        self.watch.stop()


Trainer.TestCase.settings = settings(
    max_examples=SEQUENCES,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.slow
@pytest.mark.timeout(400)  # on a busy machine
class TestSequences(Trainer.TestCase):
    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch, caplog):
        monkeypatch.setattr("heapwatch.runtime.cleanup.release", lambda: None)
        monkeypatch.setattr("psutil.Process.children", lambda *_, **__: [])
        caplog.set_level("CRITICAL")
