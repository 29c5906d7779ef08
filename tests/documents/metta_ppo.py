"""Memory tracking during training: the Metta trainer."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
import torch

from examples.common.command import Served
from examples.metta_ppo.__main__ import tracking
from examples.metta_ppo.tracking import MemoryTracking
from examples.metta_ppo.trainer import MettaTrainer
from heapwatch.watch import Watch
from tests.documents.example import Example, finished, own_state
from tests.documents.rows import Check, labels, limit, logs

EXPERIENCE = tuple(
    f"experience{part}" for part in ("", ".obs", ".actions", ".rewards", ".values", ".lstm_h", ".lstm_c")
)
STATE = ("trainer.stats", "trainer.losses", "trainer.evals", "policy.state_dict", "optimizer.state_dict")
INFRASTRUCTURE = ("policy_store", "system_monitor._metrics", "curriculum")
OPTIONAL = {"wandb_run", "torch_profiler"}
SERVED = Served(port=0, host="127.0.0.1", interval=0.1, budget=0.5, port_search=False)
EPOCHS = 8  # after which growth is told from noise


def tracked(*names: str):
    return labels("trainer_object_size_bytes", "object", *names)


def shapes(example: Example) -> None:
    """64 steps of 16 environments: 128 floats are observed, and 64 are each part of the state."""
    names = {"experience.obs": 128, "experience.lstm_h": 64, "experience.lstm_c": 64, "experience.rewards": 1}
    tracked(*EXPERIENCE)(example)
    known = example.readings().by("trainer_object_size_bytes", "object")
    for name, floats in names.items():
        assert known[name] == pytest.approx(64 * 16 * 4 * floats, abs=500)
    assert known["experience"] > sum(known[name] for name in names)


def configured(example: Example) -> None:
    """The example runs with 2 epochs and 4.5 MB; the defaults are the document's."""
    assert MemoryTracking() == MemoryTracking(True, 100, 5.0)
    declared = example.readings().growth_limits_by_key()
    assert declared["object_size//epoch"] == 4.5e6
    line = re.compile(r"(?m)^Memory Report - Epoch (\d+)$")
    example.until(lambda: len(line.findall(example.log())) > 2)
    assert [int(number) for number in line.findall(example.log())][:3] == [2, 4, 6]


def switched_off(_example: Example) -> None:
    with TemporaryDirectory() as folder:
        off = ("trainer.memory_tracking_enabled=false",)
        with finished("metta_ppo", Path(folder), *off, steps=200) as (said, _record):
            assert "None/metrics" in said  # no port is open
            assert "Memory Report" not in said
            assert not list(Path(folder).glob("targets/*"))


def every_tenth_epoch(_example: Example) -> None:
    watch = Watch("metta_ppo", interval=3600.0)
    stats: dict[str, int] = {}
    watch.size("trainer.stats", stats)
    watch.size_interval(10)
    watch.step()
    (before,) = sizes(watch)
    for epoch in range(1, 11):
        stats |= {f"{epoch}/{number}": number for number in range(1000)}
        watch.progress("epoch")
        watch.step()
        assert (sizes(watch) > [before]) == (epoch == 10)


def sizes(watch: Watch) -> list[float]:
    return [sample.value for sample in next(iter(watch._exporter.sizes.collect())).samples]


def steady(example: Example) -> None:
    example.until(lambda: example.readings().by("trainer_progress_total", "unit").get("epoch", 0) > EPOCHS)
    sizes = example.report().sizes
    assert sizes["experience.obs"].verdict == "healthy"
    assert sizes["policy.state_dict"].verdict == "healthy"


def leaks(example: Example) -> None:
    """What grows by less than the threshold an epoch is none, what grows by more is one."""
    detected = re.compile(r"Potential memory leaks detected in: (\[.*\])")
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
    run: Logged | None, profiler: object, enough: Callable[[], bool] = lambda: True
) -> Iterator[dict[str, float]]:
    """The sizes of objects in the example, in this process, after enough epochs; a run may be active."""
    with own_state(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "wandb", SimpleNamespace(run=run))
        torch.set_num_threads(1)  # as the example does
        trainer = MettaTrainer(rate=None)
        trainer.torch_profiler = profiler
        try:
            with trainer.watched(SERVED) as watch:
                for epoch in range(1, 100):
                    trainer.train(watch, 64 * epoch)
                    if enough():
                        break
                watch._exporter.sizes.sample()
                yield {
                    sample.labels["object"]: sample.value
                    for sample in next(iter(watch._exporter.sizes.collect())).samples
                }
        finally:
            trainer.environments.close()


def wandb(_example: Example) -> None:
    """The example logs to the run that is active, by itself."""
    run, growth = Logged(), "memory/experience/growth_mb_per_epoch"
    with trained(run, None, lambda: growth in run.values):
        pass
    assert run.values["memory/experience/size_mb"] == pytest.approx(1.07, rel=0.1)
    assert run.values[growth] == pytest.approx(0, abs=0.01)


def where_they_exist(_example: Example) -> None:
    with trained(None, None) as sizes:
        assert not OPTIONAL & sizes.keys()
    with trained(Logged(), torch.profiler.profile()) as sizes:
        assert all(sizes[name] > 100 for name in OPTIONAL)


def named_configuration(_example: Example) -> None:
    assert tracking(["trainer=simple.medium", "trainer.memory_report_interval=50"]) == MemoryTracking(
        True, 50, 5.0
    )
    with pytest.raises(FileNotFoundError):
        tracking(["trainer=simple.unknown"])


def cleaned(example: Example) -> None:
    assert example.force_cleanup()["removed"]["stats"] > 0


CHECKS: dict[str, Check] = {
    "the experience buffer and its parts": shapes,
    "`trainer.stats`, `trainer.losses`, `trainer.evals`, policy and optimizer": tracked(*STATE),
    "`policy_store`, `system_monitor._metrics`, `curriculum`": tracked(*INFRASTRUCTURE),
    "`wandb_run`, `torch_profiler`": where_they_exist,
    "`trainer=simple.medium`": named_configuration,
    "`memory_tracking_enabled`, `memory_report_interval`, `memory_leak_threshold_mb`": configured,
    "tracking switched off": switched_off,
    "sizes every 10 epochs": every_tenth_epoch,
    "a report every N epochs": logs("Memory Report - Epoch", "Current Memory Usage:", "Memory Growth:"),
    "growth above 5 MB an epoch is flagged": limit("metta", "object_size", "", epoch=5e6),
    "objects of fixed size stay constant": steady,
    "`WARNING: Potential memory leaks detected in: [...]`": leaks,
    "Wandb: `memory/{object_name}/size_mb`, `…/growth_mb_per_epoch`": wandb,
    "old data is cleared": cleaned,
}
