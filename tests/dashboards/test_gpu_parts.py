"""The parts of GPU memory add up, other ranks are left out, and each part has its verdict."""

from pathlib import Path
from typing import Any

import pytest

from heapwatch_dashboards.boards import gpu
from tests.dashboards.documents import interpolate
from tests.support.programs import promtool_tests

pytestmark = pytest.mark.slow


def held(rank: int, **parts: int) -> list[dict[str, str]]:
    """What a rank exposes of a device of 24 that both ranks see, whose verdict is known since the start."""
    of = f'job="trainer", instance="rank{rank}"'
    series = {f'trainer_gpu_memory_part_bytes{{{of}, device="0", part="{p}"}}': v for p, v in parts.items()}
    series |= {
        f'trainer_gpu_info{{{of}, device="0", uuid="GPU-a", name="A10G", driver="1"}}': 1,
        f'trainer_gpu_memory_total_bytes{{{of}, device="0"}}': 24,
        f'trainer_gpu_memory_used_bytes{{{of}, device="0"}}': 24 - parts["free"] - parts["driver"],
        f"up{{{of}}}": 1,
        f"trainer_info{{{of}}}": 1,
        f'trainer_memory_verdict{{{of}, verdict="healthy"}}': 1,
    }
    return [{"series": name, "values": f"{value}x5"} for name, value in series.items()]


OF_BOTH = {"context": 1, "unattributed": 1, "driver": 1, "free": 9}
RANKS = [
    *held(0, torch_in_use=6, torch_cached=1, other_pools=2, other_processes=3, **OF_BOTH),
    *held(1, torch_in_use=2, torch_cached=0, other_pools=0, other_processes=10, **OF_BOTH),
]


def alert(**labels: str) -> dict[str, str]:
    """An alert of rank 0 that fires from the start."""
    all_labels = {"alertstate": "firing", "job": "trainer", "instance": "rank0", **labels}
    written = ", ".join(f'{name}="{value}"' for name, value in all_labels.items())
    return {"series": f"ALERTS{{{written}}}", "values": "1x5"}


def check(folder: Path, series: list[dict[str, str]], expected: dict[str, Any]) -> None:
    """Evaluate expressions about rank 0 over the series, five minutes in, by promtool."""
    tests = [
        {"expr": interpolate(expression, instance="rank0"), "eval_time": "5m", "exp_samples": samples}
        for expression, samples in expected.items()
    ]
    promtool_tests(folder, {"interval": "1m", "input_series": series, "promql_expr_test": tests})


def test_what_another_rank_holds_is_among_the_rest(tmp_path: Path) -> None:
    sums = {
        gpu.TOTAL_SUM: 24,
        gpu.FREE_SUM: 9,
        gpu.part("torch_in_use"): 6,
        gpu.part("other_pools"): 2,
        gpu.REST_SUM: 24 - 9 - 6 - 1 - 2 - 1,
    }
    check(tmp_path, RANKS, {query: [{"labels": "{}", "value": value}] for query, value in sums.items()})


def test_every_part_that_can_leak_has_a_verdict(tmp_path: Path) -> None:
    alerts = [
        alert(kind="growth", resource="gpu_memory", component="0", alertname="TrainerGrowthPerMinute"),
        alert(
            kind="growth", resource="gpu_memory", component="0 reserved", alertname="TrainerGrowthPerMinute"
        ),
        alert(kind="threshold", resource="gpu_memory", component="0", alertname="TrainerGpuFragmentation"),
    ]
    verdicts = {
        "torch_in_use": 2,
        "torch_cached": 3,
        "other_pools": 4,
        "other_processes": 1,
        "unattributed": 1,
    }
    of = 'device="0", instance="rank0", job="trainer"'
    samples = [{"labels": f'{{{of}, part="{part}"}}', "value": value} for part, value in verdicts.items()]
    of_pools = 'job="trainer", instance="rank0", resource="gpu_memory", component="0 other_pools"'
    leak = f"job:trainer_leak:current{{{of_pools}}}"
    leaks = [{"series": leak, "values": "1e5x5"}]
    check(tmp_path, [*RANKS, *leaks, *alerts], {gpu.PART_VERDICT: samples})
