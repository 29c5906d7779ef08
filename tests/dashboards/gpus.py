"""What a made-up trainer would expose about a GPU: parts of its memory that add up."""

from tests.dashboards.series import Shape, Value, within
from tests.dashboards.trainers import Trainer

TOTAL = 24e9
CONTEXT = 0.45e9
OTHER_PROCESSES = 0.3e9
HIDDEN = 0.05e9
DRIVER = 0.15e9

Values = list[Value]


def gpu(
    trainer: Trainer,
    device: str,
    in_use: Shape,
    cached: float,
    unusable: float = 0,
    pools: Shape = 0,
    library: str = "torch",
) -> None:
    """One device: what a library uses and keeps (bytes), and what other pools of the process hold."""
    used = trainer.clock.each(within(in_use, *trainer.lives))
    beside = trainer.clock.each(within(pools, *trainer.lives))

    def flat(size: float) -> Values:
        return [None if value is None else size for value in used]

    parts = {
        f"{library}_in_use": used,
        f"{library}_cached": flat(cached),
        "context": flat(CONTEXT),
        "other_pools": beside,
        "workers": flat(0),
        "other_processes": flat(OTHER_PROCESSES),
        "unattributed": flat(HIDDEN),
    }
    everybody = _added(*parts.values())
    parts["driver"] = flat(DRIVER)
    parts["free"] = [None if value is None else TOTAL - DRIVER - value for value in everybody]
    for part, values in parts.items():
        trainer.add("trainer_gpu_memory_part_bytes", values, device=device, part=part)
    judged = {"jax_in_use", "other_pools", "workers", "other_processes", "unattributed"}
    for part in judged & parts.keys():
        trainer.level("gpu_memory", f"{device} {part}", parts[part])
    if library == "torch":
        trainer.level("gpu_memory", device, used)
        trainer.add("trainer_gpu_memory_allocated_bytes", used, device=device)
        trainer.add("trainer_gpu_memory_reserved_bytes", _added(used, flat(cached)), device=device)
        trainer.add("trainer_gpu_memory_unusable_bytes", flat(unusable), device=device)
    own = _added(used, flat(cached), flat(CONTEXT), beside)
    trainer.add("trainer_gpu_process_memory_bytes", own, device=device)
    trainer.add("trainer_gpu_memory_used_bytes", everybody, device=device)
    trainer.add("trainer_gpu_memory_total_bytes", flat(TOTAL), device=device)
    uuid = f"GPU-{trainer.target['instance']}-{device}"
    info = {"uuid": uuid, "name": "NVIDIA A10G", "driver": "550.54"}
    trainer.add("trainer_gpu_info", flat(1), device=device, **info)


def filled(trainer: Trainer, free: float, per_minute: float, since: float) -> None:
    """The forecast for the fullest device, of which so much was free at the start; it grows from then on."""
    left = trainer.clock.each(within(lambda m: (free / per_minute - m) * 60, since))
    trainer.add("trainer_memory_time_to_limit_seconds", left, resource="gpu_memory", bound="least")


def fragmented(trainer: Trainer, device: str, size: float, since: float) -> None:
    """What is recorded and alerted when torch's reserve is fragmented."""
    labels = {"resource": "gpu_memory", "component": device}
    trainer.add("job:trainer_gpu_memory:fragmented_bytes", within(size, since), **labels)
    trainer.alert("TrainerGpuFragmentation", "warning", "threshold", "gpu_memory", device, since)


def _added(*parts: Values) -> Values:
    return [
        None if None in moment else sum(value or 0 for value in moment) for moment in zip(*parts, strict=True)
    ]
