"""Cycles, an episode, an epoch or a generation each, and the phases of one."""

from ..promql import TRAINER, growth_per_cycle, in_range, limits, max_by, min_by, present, select, sum_by

# Cycles: the slowest unit that a trainer counts. Episodes are the cycles of one that counts nothing larger.
_CYCLES = select("trainer_progress_total", 'unit=~"episode|epoch|generation"')
CYCLES_IN_RANGE = min_by(TRAINER, in_range("increase", _CYCLES))
CYCLES_IN_RANGE_SUM = f"round(sum({CYCLES_IN_RANGE}))"
_PER_CYCLE = f"on (job, instance) group_left () ({CYCLES_IN_RANGE} > 0)"
CYCLE_SECONDS = f"max(1 / {min_by(TRAINER, f'deriv({_CYCLES}[1h])')} > 0)"

# Phases.
_PHASE = f"{TRAINER}, phase"
_PHASE_END = select("trainer_phase_end_resident_memory_bytes")
PHASE_END = max_by(_PHASE, _PHASE_END)
PHASE_GAIN = max_by(_PHASE, select("trainer_phase_memory_delta_bytes"))
PHASE_GROWTH_IN_RANGE = present(max_by(_PHASE, in_range("delta", _PHASE_END)))
# Its own gain: memory at the end of an innocent phase lies as much higher as at the end of a guilty one.
_GAINED = max_by("phase", in_range("avg_over_time", select("trainer_phase_memory_delta_bytes")))
PHASE_THAT_GAINS_MOST = f"topk(1, {_GAINED} > 0)"
PHASE_GROWTH_PER_CYCLE = f"{PHASE_GROWTH_IN_RANGE} / {_PER_CYCLE}"
# As recorded for a limit; else of the phase that gained most at its end in half an hour.
_RECENT_CYCLES = f"{min_by(TRAINER, f'increase({_CYCLES}[30m])')} > 1"
_BY_PHASE = f"{max_by(TRAINER, f'delta({_PHASE_END}[30m])')} / ({_RECENT_CYCLES})"
_RECORDED = growth_per_cycle("memory")
MEMORY_GROWTH_PER_CYCLE = (
    f'{_RECORDED} or label_replace({_BY_PHASE} unless on (job, instance) {_RECORDED}, "per", "cycle", "", "")'
)
MOST_GROWTH_PER_CYCLE = f"max({MEMORY_GROWTH_PER_CYCLE})"
_SINCE_START = select("job:trainer_resource:total", resource="memory", component="since start")
MEMORY_SINCE_START = max_by(TRAINER, _SINCE_START)
LIMITS_SINCE_START = min_by("severity", limits("memory", "since start"))
_PHASE_SECONDS = select("trainer_phase_duration_seconds_sum")
_PHASE_COUNT = select("trainer_phase_duration_seconds_count")
PHASE_RUNS = max_by(_PHASE, in_range("increase", _PHASE_COUNT))
_RUNS_RECENTLY = max_by(_PHASE, f"increase({_PHASE_COUNT}[30m])")
PHASE_DURATION = f"{max_by(_PHASE, f'increase({_PHASE_SECONDS}[30m])')} / ({_RUNS_RECENTLY} > 0)"
PHASE_DURATION_IN_RANGE = present(
    f"{max_by(_PHASE, in_range('increase', _PHASE_SECONDS))} / ({PHASE_RUNS} > 0)"
)
_PHASE_TIME = max_by(_PHASE, in_range("increase", _PHASE_SECONDS))
PHASE_TIME_SHARE = (
    f"sort_desc({_PHASE_TIME} / on (job, instance) group_left () {sum_by(TRAINER, _PHASE_TIME)})"
)


def _ended(units: str) -> str:
    counted = select("trainer_progress_total", f'unit=~"{units}"')
    return f"({counted} > last_over_time({counted}[5m] offset $__interval))"


_LARGE_CYCLES = select("trainer_progress_total", 'unit=~"epoch|generation"')
_CYCLE_ENDED = (
    f"({_ended('epoch|generation')} or {_ended('episode')} unless on (job, instance) {_LARGE_CYCLES})"
)
CYCLE_AT_ITS_END = f"max({_CYCLE_ENDED} and on (job, instance) {_PHASE_END})"
PHASE_END_AT_CYCLE_END = max_by("phase", f"{_PHASE_END} and on (job, instance) {_CYCLE_ENDED}")
