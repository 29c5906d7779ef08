"""Memory tracking during training: the Metta trainer."""

import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from examples.common.command import Served
from examples.metta_ppo.__main__ import tracking
from examples.metta_ppo.tracking import MemoryTracking
from examples.metta_ppo.trainer import MettaTrainer
from heapwatch.collectors.readings import Readings
from heapwatch.recording.points import Point
from heapwatch.watch import Watch
from tests.documents.evolved import said_by
from tests.documents.example import Example, finished, own_state
from tests.documents.rows import Check, both, labels, limit

EXPERIENCE = tuple(
    f"experience{part}" for part in ("", ".obs", ".actions", ".rewards", ".values", ".lstm_h", ".lstm_c")
)
STATE = ("trainer.stats", "trainer.losses", "trainer.evals", "policy.state_dict", "optimizer.state_dict")
INFRASTRUCTURE = ("policy_store", "system_monitor._metrics", "curriculum")
OPTIONAL = {"wandb_run", "torch_profiler"}
SERVED = Served(port=0, host="127.0.0.1", interval=0.1, budget=0.5, port_search=False)
SAMPLE = (  # as printed in the document, by structure and order
    r"(?m)^={60}\nMemory Report - Epoch \d+\n={60}\n\n"
    r"Current Memory Usage:\n(?:  \S.*? {2,}[\d.]+ [kMG]?B\n)+\n"
    r"Memory Growth:\n(?:  \S.*? {2,}[+-][\d.e+]+ [kMG]?B \([+-][\d.e+]+ [kMG]?B/epoch\)\n)*={60}$"
)
EPOCHS = 8  # after which growth is told from noise


def tracked(*names: str):
    return labels("trainer_object_size_bytes", "object", *names)


def shapes(example: Example) -> None:
    """64 steps of 16 environments, of each 128 floats observed and 64 of both parts of the state."""
    numbers = {".obs": 128 * 4, ".actions": 8, ".rewards": 4, ".values": 4, ".lstm_h": 64 * 4}
    numbers[".lstm_c"] = numbers[".lstm_h"]
    tracked(*EXPERIENCE)(example)
    known = example.readings().by("trainer_object_size_bytes", "object")
    for name, nbytes in numbers.items():
        assert 0 <= known[f"experience{name}"] - 64 * 16 * nbytes < 200  # the tensor's own object
    whole = 64 * 16 * (sum(numbers.values()) + 2 * 4)  # with the ends of episodes and the probabilities
    assert 0 <= known["experience"] - whole < 2000


def counted(*held: object) -> int:
    """Bytes of everything that objects hold, by visiting one after the other, each storage once."""
    seen: set[int] = set()
    total, waiting = 0, list(held)
    while waiting:
        one = waiting.pop()
        key = id(one)
        if isinstance(one, torch.Tensor):
            waiting.append(one.untyped_storage())
        elif isinstance(one, torch.UntypedStorage):
            key, total = one.data_ptr(), total + (0 if one.data_ptr() in seen else len(one))
        elif isinstance(one, dict):
            waiting += one.values()  # names are not among what a dict refers to, for the collector
        elif isinstance(one, (list, tuple, deque)):
            waiting += one
        if hasattr(one, "__dict__") and not isinstance(one, torch.Tensor):
            waiting.append(vars(one))
        if key not in seen and not isinstance(one, torch.UntypedStorage):
            total += sys.getsizeof(one)
        seen.add(key)
    return total


def state(_example: Example) -> None:
    """The sizes after some epochs are those of another way to count."""
    with trained(None, epochs=3, EVALUATE_EVERY=1) as (trainer, watch):
        sizes = measured_sizes(watch)
        held = {
            "trainer.stats": trainer.stats,
            "trainer.losses": trainer.losses,
            "trainer.evals": trainer.evals,
            "policy.state_dict": trainer.policy.state_dict(),
            "optimizer.state_dict": trainer.optimizer.state_dict(),
            "policy_store": trainer.policy_store,
            "system_monitor._metrics": trainer.system_monitor._metrics,
            "curriculum": trainer.curriculum,
            "lstm_states": trainer.lstm_states,
        }
        assert {*STATE, *INFRASTRUCTURE} < held.keys()
        for name, one in held.items():
            assert sizes[name] == pytest.approx(counted(one), rel=0.02, abs=300), name
    weights = sum(weight.numel() * weight.element_size() for weight in trainer.policy.parameters())
    assert 0 <= sizes["policy.state_dict"] - weights < 5000
    assert 0 <= sizes["optimizer.state_dict"] - 2 * weights < 15_000  # two moments of Adam


def configuration(_example: Example | None) -> None:
    """The defaults are the document's; a file and an override change them."""
    assert MemoryTracking() == MemoryTracking(True, 100, 5.0)
    assert tracking([]) == MemoryTracking(True, 100, 5.0)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "trainer.yaml"
        for chosen in (MemoryTracking(True, 100, 5.0), MemoryTracking(False, 7, 2.5)):
            lines = "".join(f"  {name}: {value}\n" for name, value in vars(chosen).items())
            file.write_text(f"trainer:\n{lines}")
            assert tracking(["", "--config", str(file)]) == chosen
            overridden = [f"trainer.{name}={value}" for name, value in vars(chosen).items()]
            assert tracking(["", "--config", str(file), *overridden]) == chosen


def configured(example: Example) -> None:
    """The example runs with 2 epochs and 4.5 MB."""
    declared = example.readings().growth_limits_by_key()
    assert declared["object_size//epoch"] == 4.5e6
    example.until(lambda: len(reported(example.log())) > 2)
    assert reported(example.log())[:3] == [2, 4, 6]


def reported(log: str) -> list[int]:
    """Of which epochs there are reports."""
    return [int(number) for number in re.findall(r"(?m)^Memory Report - Epoch (\d+)$", log)]


def threshold(_example: Example) -> None:
    """Growth at the threshold is allowed, and a hundredth of a megabyte an epoch more is flagged."""
    for megabytes in (5.0, 4.5):
        chosen = MemoryTracking(memory_leak_threshold_mb=megabytes)
        for off, flagged in ((-0.01, False), (0.0, False), (0.01, True)):
            said = "".join(reports_of(chosen, 1e6 * (megabytes + off)))
            assert "'trainer.stats'" not in said or flagged
            assert ("WARNING: Potential memory leaks detected in: ['trainer.stats']" in said) == flagged


def reports_of(chosen: MemoryTracking, growth: float) -> list[str]:
    """What the example's reports of 300 epochs say, were `trainer.stats` to grow by this each epoch."""
    with own_state(), said_by("heapwatch") as said:
        trainer = MettaTrainer(rate=None, tracking=chosen)
        try:
            with trainer.watched(SERVED) as watch:
                limits = Readings(watch.exporter.limits.collect()).growth_limits_by_key()
                report = sink_of(watch, "memory_report")
                report._points.clear()
                for epoch in range(1, 302):
                    about = {"sizes": {"trainer.stats": 1e6 + growth * epoch, "experience": 1.07e6}}
                    about |= {"progress": {"epoch": epoch}, "growth_limits": limits}
                    report.take(Point(time.time() + 60 * epoch, "cycle", 1e9, **about))
        finally:
            trainer.environments.close()
    return said


def sink_of(watch: Watch, name: str) -> Any:
    """What the example hands the points of its run to."""
    journal = watch.exporter._journal
    assert journal is not None
    return next(sink for sink in journal.sinks if sink.name == name)


def every_hundred_epochs(example: Example) -> None:
    """And not at others; the example has one every two epochs."""
    said = "\n".join(reports_of(MemoryTracking(), 0.0))
    assert reported(said) == [100, 200, 300]
    said = "\n".join(reports_of(MemoryTracking(memory_report_interval=3), 0.0))
    assert reported(said) == list(range(3, 301, 3))
    example.until(lambda: len(re.findall(SAMPLE, example.log())) > 2)


def switched_off(_example: Example) -> None:
    """And on: then it is served, is a target, and has reports."""
    for enabled in (False, True):
        with TemporaryDirectory() as folder:
            option = f"trainer.memory_tracking_enabled={str(enabled).lower()}"
            with finished(
                "metta_ppo", Path(folder), option, "trainer.memory_report_interval=1", steps=200
            ) as (
                said,
                _,
            ):
                served = re.search(r"(?m)^metta_ppo trains; metrics at http://127.0.0.1:\d+/metrics$", said)
                assert bool(served) == enabled
                assert ("metta_ppo trains; nothing is served\n" in said) != enabled
                assert bool(reported(said)) == enabled
                assert ("metta_ppo has ended: " in said) == enabled
                assert "None" not in said
            assert not list(Path(folder).glob("targets/*.json"))


def every_tenth_epoch(_example: Example) -> None:
    """What the example declares is measured at the first step, and after epochs 10, 20 and 30."""
    with own_state():
        trainer = MettaTrainer(rate=None)
        measured, last = [], 0.0
        try:
            with trainer.watched(Served(**(SERVED | {"interval": 3600.0}))) as watch:
                watch.step()
                for epoch in range(1, 36):
                    trainer.stats[f"epoch {epoch}"] = [float(epoch)] * 20
                    watch.progress("epoch")
                    watch.step()
                    found = measured_sizes(watch)["trainer.stats"]
                    if found != last:
                        measured.append(epoch)
                        assert epoch == 1 or found == pytest.approx(counted(trainer.stats), abs=200)
                    last = found
        finally:
            trainer.environments.close()
    assert measured == [1, 10, 20, 30]  # the first one is that of the first step


def measured_sizes(watch: Watch) -> dict[str, float]:
    return Readings(watch.exporter.sizes.collect()).by("trainer_object_size_bytes", "object")


def steady(example: Example) -> None:
    example.until(lambda: example.readings().by("trainer_progress_total", "unit").get("epoch", 0) > EPOCHS)
    sizes = example.report().sizes
    assert sizes["experience.obs"].verdict == "healthy"
    assert sizes["policy.state_dict"].verdict == "healthy"


def leaks(example: Example) -> None:
    """What grows by less than the threshold an epoch is none, what grows by more is one."""
    detected = re.compile(r"(?m)^={60}\n\nWARNING: Potential memory leaks detected in: (\[.*\])$")
    reported = "Memory Report - Epoch "
    names = ("trainer.stats", "trainer.evals")
    limits = ["over its limit of 4.5 MB/epoch", "within its limit of 4.5 MB/epoch"]
    with example.leaking(evals=120.0, stats=480.0):  # 2 and 8 MB an epoch
        example.until(lambda: "'trainer.stats'" in str(detected.findall(example.log())))
        example.until(lambda: [example.report().sizes[name].reason for name in names] == limits)
        said = example.log().count(reported)
        example.until(lambda: example.log().count(reported) > said + 1)
    assert "'trainer.evals'" not in str(detected.findall(example.log()))


class Logged:
    """A run of Weights & Biases, as far as its user sees it."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def define_metric(self, *_: object, **__: object) -> None:
        pass

    def log(self, values: dict[str, float], **_: object) -> None:
        self.values |= values


@contextmanager
def trained(
    run: Logged | None,
    *,
    profiled: bool = False,
    epochs: int = 1,
    enough: Callable[[], bool] = lambda: True,
    **constants: int,
) -> Iterator[tuple[MettaTrainer, Watch]]:
    """The example in this process after enough epochs, its objects measured; a run may be active."""
    with own_state(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "wandb", SimpleNamespace(run=run))
        for name, value in constants.items():
            patch.setattr(f"examples.metta_ppo.trainer.{name}", value)
        torch.set_num_threads(1)  # as the example does
        trainer = MettaTrainer(rate=None, profiled=profiled)
        try:
            with trainer.watched(SERVED) as watch:
                for epoch in range(epochs, 100):
                    trainer.train(watch, 64 * epoch)
                    if enough():
                        break
                watch.exporter.sizes.sample()
                yield trainer, watch
        finally:
            trainer.environments.close()


def wandb(_example: Example) -> None:
    """The example logs to the run that is active, by itself, in megabytes and those of an epoch."""
    run, growth = Logged(), "memory/experience/growth_mb_per_epoch"
    with trained(run, enough=lambda: growth in run.values) as (trainer, _):
        held = counted(trainer.experience)
        assert run.values["memory/experience/size_mb"] == pytest.approx(held / 1e6, rel=0.01)
        assert run.values[growth] == pytest.approx(0, abs=0.001)
        names = (*EXPERIENCE, *STATE, *INFRASTRUCTURE)
        assert {f"memory/{name}/size_mb" for name in names} <= run.values.keys()
    run = Logged()
    with trained(run) as (_, watch):
        logger = sink_of(watch, "wandb")
        for epoch in range(1, 41):
            sizes = {"made": 1.23e9 + 5e6 * (epoch - 40), "made.stats": 2.34e6 + 12e3 * (epoch - 40)}
            logger.take(Point(60.0 * epoch, "cycle", 4e9, progress={"epoch": epoch}, sizes=sizes))
    logged = {"made": (1230.0, 5.0), "made.stats": (2.34, 0.012)}
    for name, (size, rate) in logged.items():
        assert run.values[f"memory/{name}/size_mb"] == pytest.approx(size)
        assert run.values[f"memory/{name}/growth_mb_per_epoch"] == pytest.approx(rate)


def where_they_exist(_example: Example) -> None:
    """What the profiler saw is kept, and measured; without it and without a run neither is there."""
    with trained(None) as (_, watch):
        assert not OPTIONAL & measured_sizes(watch).keys()
    with trained(Logged(), profiled=True, PROFILE_EVERY=1) as (trainer, watch):
        sizes = measured_sizes(watch)
        assert sizes["wandb_run"] > 100
        assert "aten::lstm_cell" in [name for name, _, _ in trainer.torch_profiler or ()]
        assert sizes["torch_profiler"] == pytest.approx(counted(trainer.torch_profiler), rel=0.05)
    with TemporaryDirectory() as folder:
        options = ("--torch-profiler", "trainer.memory_report_interval=1")
        with finished("metta_ppo", Path(folder), *options, steps=200) as (said, _):
            assert re.search(r"(?m)^  torch_profiler {2,}", said)


def named_configuration(_example: Example | None) -> None:
    assert tracking(["trainer=simple.medium", "trainer.memory_report_interval=50"]) == MemoryTracking(
        True, 50, 5.0
    )
    with pytest.raises(FileNotFoundError):
        tracking(["trainer=simple.unknown"])


def cleaned(example: Example) -> None:
    assert example.force_cleanup()["removed"]["stats"] > 0


CHECKS: dict[str, Check] = {
    "the experience buffer and its parts": shapes,
    "`trainer.stats`, `trainer.losses`, `trainer.evals`, policy and optimizer": both(tracked(*STATE), state),
    "`policy_store`, `system_monitor._metrics`, `curriculum`": tracked(*INFRASTRUCTURE),
    "`wandb_run`, `torch_profiler`": where_they_exist,
    "`trainer=simple.medium`": named_configuration,
    "`memory_tracking_enabled`, `memory_report_interval`, `memory_leak_threshold_mb`": both(
        configuration, configured
    ),
    "tracking switched off": switched_off,
    "sizes every 10 epochs": every_tenth_epoch,
    "a report every N epochs": every_hundred_epochs,
    "growth above 5 MB an epoch is flagged": both(limit("metta", "object_size", "", epoch=5e6), threshold),
    "objects of fixed size stay constant": steady,
    "`WARNING: Potential memory leaks detected in: [...]`": leaks,
    "Wandb: `memory/{object_name}/size_mb`, `…/growth_mb_per_epoch`": wandb,
    "old data is cleared": cleaned,
}
