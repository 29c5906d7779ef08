"""Trainers of an hour and a half, each of which has one thing that the pages must say."""

from typing import Any

from tests.dashboards.series import Clock, Series, Value, filling
from tests.dashboards.trainers import Trainer

HOURS = 1.5
HOST, LARGER_HOST = 23e9, 92e9
SITE, REMEDY = "ppo_leaky.py:80", "collections.deque(maxlen=...)"


def leaking(clock: Clock) -> list[Series]:
    """A list that nobody declared takes all the growth."""
    ppo = Trainer(clock, "leaking:7777", "ppo", "torch")
    resident = ppo.memory(lambda m: 200e6 + 20e6 * m, HOST)
    held = [None if value is None else value - 150e6 for value in resident]
    ppo.growing_path("loss_history", "list of list", SITE, held, 1, REMEDY)
    ppo.limits()
    ppo.says((0, "too early"), (10, "leak"))
    ppo.alert("TrainerLeak", "critical", "leak", "memory", "trainer", 15)
    ppo.alert("TrainerLeak", "warning", "leak", "events", "losses", 15)  # the same list, declared
    ppo.leaks("memory", "trainer", 20e6, 15)
    ppo.leaks("events", "losses", 600, 15)
    ppo.alert("TrainerLimitExceeded", "warning", "threshold", "memory", "trainer", 15)
    _cycles(ppo)
    return ppo.series


def _cycles(ppo: Trainer) -> None:
    """An epoch a minute; memory rises in the rollout, and lies higher at the end of every phase after it."""
    ppo.progress(epoch=1)
    ppo.phase("rollout", lambda m: 200e6 + 20e6 * m, 20e6, 30, 1)
    ppo.phase("update", lambda m: 230e6 + 20.2e6 * m, -1e6, 30, 1)


def level(clock: Clock) -> list[Series]:
    """Its buffer filled half an hour ago. Its clock is forty seconds ahead of Prometheus's."""
    dqn = Trainer(clock, "level:7777", "dqn", "torch")
    resident = dqn.memory(lambda m: 200e6 + filling(300e6, 40)(m), HOST)
    held: list[Value] = [None if value is None else value - 150e6 for value in resident]
    labels = {"path": "agent.replay", "type": "deque of tuple", "kind": "buffer"}
    dqn.add("trainer_growing_path_bytes", held, **labels)
    dqn.add("trainer_growing_path_growth_bytes_per_minute", 2.3e6, **labels)
    dqn.add("trainer_growing_path_leak", 0, **labels)
    dqn.limits()
    dqn.says((0, "too early"), (50, "healthy"))
    dqn.progress(step=60)
    stamps = [moment + 40 for moment in clock.times]
    dqn.series = [one for one in dqn.series if one.name not in REPLACED]
    dqn.add("trainer_last_progress_timestamp_seconds", [float(stamp) for stamp in stamps])
    dqn.add("trainer_exporter_safe_point_age_seconds", lambda m: 60 * m)
    return dqn.series


REPLACED = ("trainer_last_progress_timestamp_seconds", "trainer_exporter_safe_point_age_seconds")


def killed(clock: Clock) -> list[Series]:
    """The kernel killed it half an hour ago."""
    sac = Trainer(clock, "killed:7777", "sac", "torch", lives=(0, clock.minutes - 30))
    sac.memory(2e9, HOST)
    sac.says((0, "leak"))
    leak = {"path": "agent.losses", "type": "list", "kind": "container", "site": SITE, "remedy": REMEDY}
    sac.lost(clock.minutes - 30, "out of memory", 9e9, leak, 20e6)
    return sac.series


def young(clock: Clock) -> list[Series]:
    """Five minutes old, and sure of its growth."""
    sac = Trainer(clock, "young:7777", "sac", "torch", started=clock.minutes - 5)
    sac.memory(lambda m: 2e9 if m >= clock.minutes - 5 else None, HOST)
    sac.add("trainer_memory_growth_bytes_per_minute", 50e6)
    for bound, seconds in (("least", 5400.0), ("most", 9000.0)):
        sac.add("trainer_memory_time_to_limit_seconds", seconds, resource="memory", bound=bound)
    return sac.series


def several_lives(clock: Clock) -> list[Series]:
    """Two processes, one after the other, at one address."""
    second = Trainer(clock, "lives:7777", "walker", "box2d", started=45)
    second.memory(300e6, HOST)
    second.limits()
    second.says((0, "healthy"))
    return second.series


def ended(clock: Clock) -> list[Series]:
    """It ended half an hour ago, in silence."""
    done = Trainer(clock, "ended:7777", "walker", "box2d", lives=(0, clock.minutes - 30))
    done.memory(400e6, HOST)
    done.limits()
    done.says((0, "healthy"))
    return done.series


def fleet(clock: Clock) -> list[Series]:
    """Fifteen on two machines, each of which could have all of its own; and a receiver that did nothing."""
    series = []
    for number in range(15):
        one = Trainer(clock, f"fleet-{number}:7777", "sweep", "torch")
        one.memory(1e9, HOST if number < 10 else LARGER_HOST)
        one.limits(memory=20)
        one.says((0, "healthy"))
        series += one.series
    idle = {"job": "stack", "instance": "127.0.0.1:9095", "service": "receiver"}
    for bound in ("5", "+Inf"):
        name = "heapwatch_receiver_alert_to_effect_seconds_bucket"
        series.append(Series(name, {**idle, "le": bound}, clock.each(0)))
    return series


def _trainer(clock: Clock, name: str, **options: Any) -> Trainer:
    one = Trainer(clock, f"{name}:7777", "ppo", "torch", **options)
    one.memory(1e9, HOST)
    one.limits()
    one.says()
    return one


def said(clock: Clock) -> list[Series]:
    """Trainers of which only the word of their judge and an alert matter."""
    exceeded = ("TrainerLimitExceeded", "warning", "threshold", "memory", "trainer", 10.0)
    not_judged = ("TrainerJudgeLate", "warning", "health", "trainer", "judge", clock.minutes - 25)
    series: list[Series] = []
    for name, word, *alerts in (
        ("late", "healthy", exceeded),  # an alert fires, and its judge finds nothing that grows
        ("over", "healthy", (*exceeded, clock.minutes - 10)),  # an alert has ended
        ("unjudged", "healthy", not_judged),  # its judge stopped half an hour ago; its last word is exported
        ("growing", "growing"),  # the explanation alone says that it grows
        ("too-large", "will not fit"),  # as the explanation says
    ):
        one = _trainer(clock, name)
        one.says((0, word))
        for alert in alerts:
            one.alert(*alert)
        series += one.series
    return series


def sure(clock: Clock) -> list[Series]:
    """Five minutes old, and its explanation knows already."""
    one = _trainer(clock, "sure", started=clock.minutes - 5)
    one.says((clock.minutes - 5, "healthy"))
    return one.series


def gone(clock: Clock) -> list[Series]:
    """It ended while its explanation said that it leaked, and an alert fired."""
    lives = (0.0, clock.minutes - 30)
    one = _trainer(clock, "gone", lives=lives)
    one.says((0, "leak"))
    one.alert("TrainerLimitExceeded", "warning", "threshold", "memory", "trainer", 10, lives[1])
    one.lives = (0.0, float("inf"))  # an average of what it was
    one.alert("TrainerScrapeSlow", "warning", "health", "exporter", "scrape", 10)
    one.lives = lives
    labels = {"path": "history", "type": "list", "kind": "container"}
    one.add("trainer_object_size_bytes", 1e6, object="weights")
    one.add("trainer_growing_path_bytes", 1e6, **labels)
    for suffix, value in (("duration_seconds_sum", 4.0), ("duration_seconds_count", 2.0)):
        one.count(f"trainer_phase_{suffix}", lambda m, v=value: v * m, phase="rollout")
    one.add("trainer_phase_end_resident_memory_bytes", 1e9, phase="rollout")
    return one.series


def forked(clock: Clock) -> list[Series]:
    """Workers share its memory; a list of tensors on a GPU, and its own level, are as much and more."""
    one = Trainer(clock, "forked:7777", "ppo", "torch")
    one.memory(1e9, HOST, workers=5e7)
    shared = next(
        series
        for series in one.series
        if series.name == "trainer_process_resident_memory_bytes" and series.labels["role"] == "worker"
    )
    one.series[one.series.index(shared)] = shared._replace(values=[4e9 for _ in shared.values])
    one.limits()
    one.says((0, "leak"))
    one.add("trainer_object_size_bytes", 3e8, object="weights")
    for path, kind, nbytes in (("tensors", "container", 3e9), ("memory trainer", "level", 1e9)):
        labels = {"path": path, "type": path, "kind": kind}
        one.add("trainer_growing_path_bytes", nbytes, **labels)
        one.add("trainer_growing_path_leak", 1, **labels, site="", remedy="")
        one.add("trainer_growing_path_growth_bytes_per_minute", 1e7, **labels)
    one.cleanups([(20, 123_456_789), (40, 234_567_891)], "bodies", 3)
    return one.series


def again(clock: Clock) -> list[Series]:
    """Another process at the address of one that leaked at the same path, and had an alert."""
    one = _trainer(clock, "again", started=clock.minutes - 20)
    one.says((0, "leak"))
    labels = {"path": "history", "type": "list", "kind": "container"}
    one.add("trainer_growing_path_growth_bytes_per_minute", 1e7, **labels)
    one.add("trainer_growing_path_leak", 1, **labels, site="", remedy="")
    one.alert("TrainerLimitExceeded", "warning", "threshold", "memory", "trainer", 10, 40)
    return one.series


def pending(clock: Clock) -> list[Series]:
    """An alert about growth is not yet certain; its judge finds no leak, and a small list that grows."""
    one = _trainer(clock, "pending")
    one.says((0, "healthy"))
    one.alert("TrainerGrowthPerMinute", "warning", "growth", "events", "losses", clock.minutes - 3)
    held = one.clock.each(lambda m: 1e6 + 1e4 * m)
    one.growing_path("log", "list of str", SITE, held, 0.1, REMEDY)
    leak = next(series for series in one.series if series.name == "trainer_growing_path_leak")
    one.series[one.series.index(leak)] = leak._replace(values=[0.0 for _ in leak.values])
    return one.series


OVERDUE = (("events", "losses", "bound"), ("memory", "trainer", "retained"))


def past_its_bound(clock: Clock) -> list[Series]:
    """A list holds more than it declares; the alert waits. The allocator of its workers keeps memory."""
    one = _trainer(clock, "bound")
    one.says((0, "healthy"))
    for resource, name, reason in OVERDUE:
        one.add("job:trainer_leak:current", 5e5, resource=resource, component=name, reason=reason)
    return one.series


def soon(clock: Clock) -> list[Series]:
    """Six minutes old; it grows, and its judge has no rate yet."""
    began = clock.minutes - 6
    one = Trainer(clock, "soon:7777", "ppo", "torch", started=began, lives=(began, float("inf")))
    one.memory(lambda m: 1e9 + 60e6 * (m - began), HOST)
    one.says((0, "growing"))
    one.add("trainer_memory_growth_bytes_per_minute", 0)
    return one.series


def in_steps(clock: Clock) -> list[Series]:
    """It grows at each half of an hour, by a rate that its judge knows."""
    one = Trainer(clock, "steps:7777", "ppo", "torch")
    one.memory(lambda m: 1e9 + 150e6 * ((m + 15) // 30), HOST, workers=2e8)
    one.limits(memory=1.5)
    one.says((0, "growing"))
    one.add("trainer_memory_growth_bytes_per_minute", 5e6)
    return one.series


def machine(clock: Clock) -> list[Series]:
    """The exporter of a machine, on which a group leaks."""
    one = Trainer(clock, "node:7790", "node", "machine")
    one.says((0, "leak"))
    for number in range(20):
        one.group(f"group_{number}", 1e9 + 1e8 * number, 1e6 * number, processes=2)
    one.add("machine_memory_limit_bytes", 64e9)
    one.add("machine_memory_available_bytes", 16e9)
    one.add("trainer_memory_growth_bytes_per_minute", 1e7)
    one.add("trainer_memory_time_to_limit_seconds", 7200, resource="memory", bound="least")
    one.add("machine_group_kills_total", lambda m: 2 if m > 60 else None, group="group_3")
    return one.series


def watchdog(clock: Clock) -> list[Series]:
    """The alert that always fires, and is no trainer's."""
    labels = {"alertname": "Watchdog", "severity": "warning", "kind": "health", "alertstate": "firing"}
    return [Series("ALERTS", {**labels, "resource": "stack", "component": "watchdog"}, clock.each(1))]


SHORT = (
    *(leaking, level, killed, young, several_lives, ended, fleet),
    *(said, sure, gone, forked, again, watchdog),
    *(pending, past_its_bound, soon, in_steps, machine),
)
