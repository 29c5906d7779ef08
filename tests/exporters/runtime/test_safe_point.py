from __future__ import annotations

import threading

import pytest

from heapwatch.runtime.safe_point import HANGING_SECONDS, Request, SafePoint


class Sampler:
    """Takes `seconds` of CPU time for a sample, and `held_up` more of the test's clock."""

    def __init__(self, clock, name="sampler", interval=1.0, seconds=0.0):
        self.name = name
        self.interval = interval
        self.samples = 0
        self.error = None
        self.seconds = seconds
        self.held_up = 0.0
        self.thread = None
        self._clock = clock

    def sample(self):
        self.samples += 1
        self.thread = threading.current_thread()
        self._clock.work(self.seconds, self.held_up)
        if self.error is not None:
            raise self.error


def scheduled(safe_point, clock, *about, **options):
    sampler = Sampler(clock, *about, **options)
    safe_point.schedule(sampler, anywhere=False)
    return sampler


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
    return thread


def visit_when_due(safe_point, clock):
    clock.now = safe_point.tasks[0].due_at
    safe_point.tick()
    safe_point.visit(stepping=True)


def shares(safe_point, clock, seconds):
    """The share of the time that each sampler takes in so many seconds of training, after a start-up."""
    visits(safe_point, clock, 10)
    began, before = clock.now, [task.total for task in safe_point.tasks]
    visits(safe_point, clock, seconds)
    return [
        (task.total - spent) / (clock.now - began)
        for task, spent in zip(safe_point.tasks, before, strict=True)
    ]


def visits(safe_point, clock, seconds, step=0.1):
    """Visit as a training loop does for so long."""
    until = clock.now + seconds
    while clock.now < until:
        safe_point.tick()
        if safe_point.due:
            safe_point.visit(stepping=True)
        clock.now += step


def test_nothing_is_due_between_samples(safe_point, clock):
    sampler = scheduled(safe_point, clock)
    safe_point.schedule(sampler)
    safe_point.visit(stepping=True)
    assert sampler.samples == 1, "however often it is scheduled"
    safe_point.schedule(sampler)
    assert not safe_point.due
    clock.now += 0.5
    safe_point.tick()
    assert not safe_point.due
    clock.now += 0.6
    safe_point.tick()
    assert safe_point.due


def test_a_visit_is_due_each_tick_for_an_adapter_that_counts_then(safe_point):
    safe_point.due_each_tick = True
    safe_point.visit(stepping=True)
    assert not safe_point.due
    safe_point.tick()
    assert safe_point.due
    safe_point.stop()
    safe_point.tick()
    assert not safe_point.due


def test_a_costly_sampler_keeps_to_its_share_and_its_interval_says_so(safe_point, clock):
    scheduled(safe_point, clock, "costly", seconds=0.05)
    cheap = scheduled(safe_point, clock, "cheap")
    began = clock.now
    visits(safe_point, clock, 200)
    tasks = {task.sampler.name: task for task in safe_point.tasks}
    assert tasks["costly"].total <= safe_point.budget * (clock.now - began) + 4 * 0.05  # the first are given
    assert tasks["costly"].interval == pytest.approx(0.05 / safe_point.budget, rel=0.1)
    assert cheap.samples > 150


@pytest.mark.parametrize("seconds", [[0.05, 0.05], [0.001, 0.002, 0.3], [0.0, 0.0, 1.0]])
def test_the_budget_is_kept_and_divided_fairly(safe_point, clock, seconds):
    for number, cost in enumerate(seconds):
        scheduled(safe_point, clock, f"sampler {number}", seconds=cost)
    found = shares(safe_point, clock, 5000)
    assert sum(found) <= safe_point.budget * 1.02
    least = min(found[number] for number, cost in enumerate(seconds) if cost == max(seconds))
    assert least >= 0.9 * min(max(seconds) / 1.0, safe_point.budget / 2 / len(seconds))


def gaps(safe_point, clock, seconds, step=0.1):
    """Seconds between the samples of the first sampler while the training loop runs for so long."""
    sampler, taken, until = safe_point.tasks[0].sampler, [clock.now], clock.now + seconds
    while clock.now < until:
        samples = sampler.samples
        visits(safe_point, clock, step, step)
        if sampler.samples > samples:
            taken.append(clock.now)
    return [after - before for before, after in zip(taken, [*taken[1:], clock.now], strict=True)]


@pytest.mark.parametrize(
    ("seconds", "held_up", "longest"),
    [(0.001, 0.5, 7), (0.5, 0.0, 20)],
    ids=["delayed by the machine", "a garbage collection fell into it"],
)
def test_one_bad_sample_does_not_blind_the_watcher(safe_point, clock, seconds, held_up, longest):
    safe_point.budget = 0.002
    sampler = scheduled(safe_point, clock, interval=5.0, seconds=0.001)
    visits(safe_point, clock, 600)
    sampler.seconds, sampler.held_up = seconds, held_up
    visit_when_due(safe_point, clock)
    sampler.seconds, sampler.held_up = 0.001, 0.0
    assert max(gaps(safe_point, clock, 600)) < longest
    assert safe_point.tasks[0].interval == sampler.interval


def test_a_source_that_waits_every_time_is_asked_more_rarely(safe_point, clock):
    sampler = scheduled(safe_point, clock, interval=5.0, seconds=0.0001)
    sampler.held_up = 2.0  # such as a disk or a lock
    visits(safe_point, clock, 300)
    assert safe_point.tasks[0].interval == pytest.approx(20, rel=0.1)


def test_a_cheap_read_waits_for_no_costly_one(safe_point, clock):
    costly = [
        scheduled(safe_point, clock, f"costly {number}", interval=5.0, seconds=0.05) for number in range(3)
    ]
    cheap = scheduled(safe_point, clock, "cheap", interval=5.0, seconds=0.0001)
    for _ in range(4):
        safe_point.visit(stepping=True)
    clock.now += 1000
    safe_point.tick()
    safe_point.visit(stepping=True)
    assert cheap.samples == 2
    assert [sampler.samples for sampler in costly].count(2) == 1


def test_one_visit_leaves_the_rest_to_the_next(safe_point, clock):
    samplers = [scheduled(safe_point, clock, str(number), seconds=0.01) for number in range(3)]
    safe_point.visit(stepping=True)
    assert [sampler.samples for sampler in samplers] == [1, 0, 0]
    assert safe_point.due
    safe_point.visit(stepping=True)
    safe_point.visit(stepping=True)
    assert [sampler.samples for sampler in samplers] == [1, 1, 1]


def test_what_a_sampler_raises_is_counted_and_its_series_marked(safe_point, clock, failures):
    sampler = scheduled(safe_point, clock)
    sampler.error = RuntimeError("deque mutated during iteration")
    safe_point.visit(stepping=True)
    assert safe_point.failed(sampler)
    assert failures.counts["sampler"] == 1
    assert safe_point.tasks[0].sampled_at is None
    sampler.error = None
    visits(safe_point, clock, 2)
    assert not safe_point.failed(sampler)


def test_an_interrupt_passes_through_and_the_safe_point_stays_usable(safe_point, clock):
    sampler = scheduled(safe_point, clock)
    sampler.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        safe_point.visit(stepping=True)
    sampler.error = None
    visits(safe_point, clock, 2)
    assert sampler.samples >= 2


def test_only_the_thread_that_steps_first_samples(safe_point, clock):
    sampler = scheduled(safe_point, clock)
    safe_point.visit(stepping=True)
    clock.now += 10
    safe_point.wake()
    in_thread(lambda: safe_point.visit(stepping=True))
    assert sampler.samples == 1
    safe_point.visit(stepping=True)
    assert sampler.samples == 2
    assert sampler.thread is threading.current_thread()


def test_the_thread_that_steps_takes_over_from_one_that_only_ends_phases(safe_point, clock):
    sampler = scheduled(safe_point, clock)
    safe_point.visit(stepping=False)
    clock.now += 10
    stepping = in_thread(lambda: safe_point.visit(stepping=True))
    assert sampler.thread is stepping


def test_before_the_first_step_a_scrape_samples_what_may_be_sampled_anywhere(safe_point, clock):
    anywhere, careful = Sampler(clock, "anywhere"), Sampler(clock, "careful")
    safe_point.schedule(anywhere, anywhere=True)
    safe_point.schedule(careful, anywhere=False)
    safe_point.sample_unowned()
    assert (anywhere.samples, careful.samples) == (1, 0)
    safe_point.visit(stepping=True)
    clock.now += 100
    safe_point.sample_unowned()
    assert (anywhere.samples, careful.samples) == (1, 1)


def test_a_step_inside_a_sample_does_nothing(safe_point, clock):
    class Stepping(Sampler):
        def sample(self):
            super().sample()
            safe_point.due = True
            safe_point.visit(stepping=True)

    sampler = Stepping(clock)
    safe_point.schedule(sampler, anywhere=False)
    safe_point.visit(stepping=True)
    assert sampler.samples == 1


def test_inside_a_physics_step_nothing_is_done(safe_point, clock):
    sampler = scheduled(safe_point, clock)
    safe_point.blocked = lambda: True
    safe_point.visit(stepping=True)
    assert sampler.samples == 0
    safe_point.blocked = lambda: False
    assert safe_point.due
    safe_point.visit(stepping=True)
    assert sampler.samples == 1


def test_a_hanging_sample_is_said_once_and_shown_while_it_hangs(safe_point, clock, caplog):
    class Hanging(Sampler):
        def sample(self):
            clock.now += HANGING_SECONDS + 1
            safe_point.tick()
            safe_point.tick()
            self.seen = clock.now - safe_point.tasks[0].running_since

    sampler = Hanging(clock)
    safe_point.schedule(sampler, anywhere=False)
    safe_point.visit(stepping=True)
    assert sampler.seen == HANGING_SECONDS + 1
    assert safe_point.tasks[0].running_since is None
    assert len([record for record in caplog.records if "cannot be interrupted" in record.message]) == 1


def test_the_daemon_thread_raises_the_flag_survives_errors_and_ends(failures):
    raised = threading.Event()
    safe_point = SafePoint(failures, budget=0.01, tick_seconds=0.005)
    safe_point.visit(stepping=True)
    ticks = []

    def tick():
        ticks.append(1)
        if len(ticks) == 1:
            raise ZeroDivisionError
        raised.set()

    safe_point.on_tick.append(tick)
    safe_point.start()
    assert raised.wait(10)
    safe_point.stop()
    for thread in threading.enumerate():
        if thread.name == "heapwatch-ticker":
            thread.join(10)
            assert not thread.is_alive()
    assert failures.counts["safe_point"] == 1


def test_an_error_of_the_program_continues_in_its_thread() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    request = Request(interrupted)
    with pytest.raises(KeyboardInterrupt):
        request.make()
    assert request.wait(10) is None
