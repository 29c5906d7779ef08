"""The changes of `make documents-mutation`, and which rows have to notice each."""

from typing import NamedTuple


class Change(NamedTuple):
    """A text of a file and what replaces it everywhere there; the names of the rows, or how they begin."""

    file: str
    old: str
    new: str
    rows: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}: {self.old.strip()!r} -> {self.new.strip()!r} ({'; '.join(self.rows)})"


# By file: a text, what replaces it, and the rows.
_BY_FILE: dict[str, tuple[tuple[str, ...], ...]] = {
    "exporters/heapwatch/analysis/limits.py": (
        (
            '{"warning": 600e6, "critical": 900e6',
            '{"warning": 6000e6, "critical": 9000e6',
            "walker: aggressive thresholds",
        ),
        ('MEMORY: {"minute": 20e6}', 'MEMORY: {"minute": 200e6}', "walker: growth above 20 MB"),
        (
            'Component("bodies", "static"): {"critical": 300}',
            'Component("bodies", "static"): {"critical": 3000}',
            "walker: static bodies",
        ),
        (
            'Component("gpu_memory", ""): {"warning": 20e9}',
            'Component("gpu_memory", ""): {"warning": 200e9}',
            "erl_trading: GPU memory stable",
        ),
        ('"losses"): {"warning": 1001}', '"losses"): {"warning": 1100}', "fire_dqn: more than these"),
        (
            '{"warning": 1e9, "critical": 1.5e9',
            '{"warning": 1.2e9, "critical": 1.5e9',
            "walker: memory: warning",
        ),
        ('{"warning": 500, "critical": 1000', '{"warning": 500, "critical": 1200', "walker: bodies: warning"),
        ('"food_sources"): {"warning": 50}', '"food_sources"): {"warning": 500}', "walker: food: warning"),
        ('MEMORY: {"warning": 40e9', 'MEMORY: {"warning": 50e9', "erl_trading: 30 to 40 GB"),
        ('"DDPGAgent"): {"warning": 30}', '"DDPGAgent"): {"warning": 33}', "erl_trading: 30 agents"),
        ('GROWN: {"warning": 35e9', 'GROWN: {"warning": 45e9', "erl_trading: total growth"),
    ),
    "prometheus/rules/default_limits.yml": (
        (
            '6e+08 * job:trainer:profile{profile="walker-aggressive"}',
            '6e+09 * job:trainer:profile{profile="walker-aggressive"}',
            "walker: aggressive thresholds",
        ),
        (
            'labels: {resource: bodies, component: all, per: minute, profile: ""}\n        expr: 10 *',
            'labels: {resource: bodies, component: all, per: minute, profile: ""}\n        expr: 9999 *',
            "walker: growth above 10 bodies",
        ),
        (
            '5e+08 * job:trainer:profile{profile="erl-trading-aggressive"}',
            '5e+09 * job:trainer:profile{profile="erl-trading-aggressive"}',
            "erl_trading: ~500 MB",
        ),
        (
            '5e+09 * job:trainer:profile{profile="erl-trading"}',
            '6e+09 * job:trainer:profile{profile="erl-trading"}',
            "erl_trading: more than +5 GB",
        ),
        (
            '5e+06 * job:trainer:profile{profile="metta"}',
            '6e+06 * job:trainer:profile{profile="metta"}',
            "metta_ppo: growth above",
        ),
        (
            '(1e+07 * job:trainer:profile{profile="fire-dqn"}',
            '(1.1e+07 * job:trainer:profile{profile="fire-dqn"}',
            "fire_dqn: the same on a GPU",
        ),
        (
            'per: episode, profile: ""}\n        expr: 1e+07',
            'per: episode, profile: ""}\n        expr: 1.1e+07',
            "fire_dqn: the same without",
        ),
    ),
    "exporters/heapwatch/cli/cleanup.py": (
        ('"action": arguments.action,', '"action": "regular",', "walker: a cleanup by hand"),
    ),
    "exporters/heapwatch/cli/monitor.py": (
        (
            '"walker-aggressive" if arguments.aggressive_thresholds else None',
            "None",
            "walker: `start_monitoring.sh",
        ),
        (
            "if limit is not None},\n        BODIES",
            "if limit is None and False},\n        BODIES",
            "walker: its options",
        ),
        (
            "for severity, limit in bodies.items() if limit is not None",
            "for severity, limit in bodies.items() if limit is None and False",
            "walker: its options",
        ),
        ("time.sleep(arguments.interval)", "time.sleep(0)", "walker: its options"),
        ("find_token_of_user() if arguments.auto_cleanup else None", "None", "walker: auto-cleanup"),
    ),
    "examples/walker/trainer.py": (
        ("if self.steps % STEPS_PER_CLEANUP == 0:", "if False:", "walker: regular cleanup"),
        ("if self._auto_cleanup and", "if False and", "walker: emergency by the trainer itself"),
        ("log_memory(watch, run.info.run_id)", "pass", "walker: MLflow"),
        ("population: int = 30,", "population: int = 31,", "walker: 186 bodies"),
        ("for name in ecosystem.events:", 'for name in ("consumption", "death"):', "walker: events"),
        ('watch.buffer("replay", ', 'watch.events("replay", ', "walker: replay buffer memory"),
    ),
    "examples/walker/health.py": (
        ("LINE_SECONDS = 20.0", "LINE_SECONDS = 2.0", "walker: body types in the log"),
        ("EMERGENCY_BODIES = 2e9,", "EMERGENCY_BODIES = 3e9,", "walker: emergency by the trainer itself"),
        ("FOOD_WARNING = 30", "FOOD_WARNING = 5000", "walker: a warning above 30 food"),
        (
            '"EMERGENCY cleanup" if action == "emergency" else "Routine cleanup"',
            '"Cleanup"',
            "walker: regular cleanup",
            "walker: emergency cleanup",
            "walker: cleanups in",
        ),
    ),
    "examples/walker/ecosystem.py": (
        ("body.type == b2.b2_staticBody for body", "body == self.ground for body", "walker: orphaned bodies"),
    ),
    "exporters/heapwatch/http/endpoints.py": (
        ('if health["training"] != "stalled":', "if True:", "walker: Docker: container health"),
    ),
    "docker-compose.yml": (
        ("http://127.0.0.1:7777/readyz", "http://127.0.0.1:7777/healthz", "walker: Docker"),
    ),
    "dashboards/heapwatch_dashboards/boards/world.py": (
        ('_BODIES = select("trainer_bodies")', '_BODIES = select("trainer_world_bodies")', "walker: Grafana"),
    ),
    "examples/walker/cleaning.py": (
        ("EMERGENCY_FOOD = 10", "EMERGENCY_FOOD = 25", "walker: emergency cleanup"),
        ("REGULAR_FOOD = 30", "REGULAR_FOOD = 45", "walker: regular cleanup"),
        ('emergency or resource == "memory" else', "True else", "walker: cleanup does what"),
    ),
    "examples/erl_trading/trainer.py": (
        (
            'memory_report_interval(1, "generation")',
            'memory_report_interval(10, "generation")',
            "erl_trading: a report after each generation",
        ),
        ("finally:  # also at SIGTERM", "except ValueError:", "erl_trading: the final summary"),
        ('self.generation = saved["generation"]', "pass", "erl_trading: `--resume`"),
        (
            "watch.objects(list, dict, np.ndarray, ",
            "watch.objects(list, dict, ",
            "erl_trading: baseline and a snapshot",
        ),
        ("self.leaks.in_training(self.best_agent)", "pass", "erl_trading: scenario 2"),
        ("self.uploads.extend([self.generation] * pending)", "pass", "erl_trading: upload queue"),
        ("watch.expect(ReplayBuffer, 1)", "pass", "erl_trading: live objects"),
        (
            "watch.objects(list, dict, np.ndarray, ",
            "watch.objects(list, np.ndarray, ",
            "erl_trading: lists, dicts",
        ),
        ('watch.events("generation_times", "generation_times")', "pass", "erl_trading: histories"),
        (", torch.Tensor, mpl.figure.Figure)", ", torch.Tensor)", "erl_trading: figures"),
        ("watch.objects(list, dict, np.ndarray, ", "watch.objects(list, dict, ", "erl_trading: NumPy"),
    ),
    "exporters/heapwatch/collectors/gpu.py": (
        ('yield "trainer_gpu_memory_reserved_bytes", device, pool.held', "pass", "erl_trading: GPU memory"),
    ),
    "prometheus/rules/limits.yml": (
        (
            "max by (job, instance) (last_over_time(trainer_memory_available_bytes[5m]))",
            "max by (job, instance) (last_over_time(trainer_memory_left_bytes[5m]))",
            "erl_trading: memory left",
        ),
    ),
    "exporters/heapwatch/explain/describe.py": (
        (
            "self._searched_of(known.path).traced or site or self._called_at(known, place, owner)",
            "None",
            "erl_trading: tracemalloc",
        ),
    ),
    "exporters/heapwatch/cli/report.py": (
        (
            "deque(lines, _LOG_LINES)",
            "list(lines)[:_LOG_LINES]",
            "erl_trading: what to report: the last 50",
        ),
    ),
    "exporters/heapwatch/recording/checkpoints.py": (
        (
            'parts.append(f"VMS {_gigabytes(now.memory.virtual)}")',
            "pass",
            "erl_trading: baseline and a snapshot",
        ),
        ('parts.append(f"GPU {held}")', "pass", "erl_trading: GPU memory, allocated"),
    ),
    "exporters/heapwatch/exporter.py": (
        (
            "self.memory.read_virtual(), *gpu",
            "self.memory.read_virtual()",
            "erl_trading: GPU memory, allocated",
        ),
        (
            "return reported or headline(explanation)",
            "return headline(explanation)",
            "fire_dqn: final cleanup",
        ),
        ("self._journal.found_large(tuple(found))", "pass", "erl_trading: the top 20"),
    ),
    "examples/fire_dqn/trainer.py": (
        ("schedule.every(50, ", "schedule.every(7, ", "fire_dqn: every 50 steps"),
        ("schedule.every(100, ", "schedule.every(9, ", "fire_dqn: every 100 training steps"),
        ("schedule.every(10, ", "schedule.every(2, ", "fire_dqn: every 10 episodes"),
        ("KEPT_STEP_TIMES = 100", "KEPT_STEP_TIMES = 110", "fire_dqn: losses and rewards"),
        ("KEPT_EXPERIENCE = 2000", "KEPT_EXPERIENCE = 2200", "fire_dqn: experience buffer"),
        ('watch.phase("episode")', 'watch.phase("play")', "fire_dqn: memory by episode"),
        ("agent.memory.buffer = bounded(kept, CAPACITY)", "pass", "fire_dqn: cleanup frees"),
    ),
    "prometheus/rules/leak.yml": (
        (
            "min_over_time(trainer_buffer_graph_tensors[10m])",
            "min_over_time(trainer_buffer_graphs[10m])",
            "fire_dqn: they are the leak",
        ),
    ),
    "exporters/heapwatch/cli/reporter.py": (
        (", *self._live.verdicts().alerts()]", "]", "fire_dqn: they are in the alerts"),
        ('return counts and f"Body types: {counts}"', "return counts", "walker: `monitor_system_health.py`"),
        (
            'return f"{alert.severity.upper()}: {name} = ',
            'return f"{alert.severity}: {name} = ',
            "walker: `CRITICAL: world_bodies`",
        ),
    ),
    "examples/metta_ppo/trainer.py": (
        (
            "per_epoch=1e6 * self.tracking.memory_leak_threshold_mb",
            "per_epoch=5e6",
            "metta_ppo: `memory_tracking_enabled`",
        ),
        ("log_memory(watch, self.wandb_run)", "pass", "metta_ppo: Wandb"),
        ("if getattr(self, name) is not None", "if False", "metta_ppo: `wandb_run`, `torch_profiler`"),
        ('    "experience.lstm_c",\n', "", "metta_ppo: the experience buffer"),
        (
            'watch.size("optimizer.state_dict", self.optimizer.state_dict)',
            "pass",
            "metta_ppo: `trainer.stats`",
        ),
        ('"system_monitor._metrics"', '"system_monitor"', "metta_ppo: `policy_store`"),
        ("if not self.tracking.memory_tracking_enabled:", "if False:", "metta_ppo: tracking switched off"),
        (
            'watch.memory_report_interval(self.tracking.memory_report_interval, "epoch")',
            "pass",
            "metta_ppo: a report every",
        ),
        (
            'watch.size("policy.state_dict", self.policy.state_dict)',
            'watch.size("policy.state_dict", lambda: list(range(9000 * self.epochs)))',
            "metta_ppo: objects of fixed size",
        ),
        (
            '"stats": len(self.stats) - 1,',
            '"stats": 0,',
            "metta_ppo: `WARNING: Potential",
            "metta_ppo: old data",
        ),
    ),
    "examples/metta_ppo/configurations/simple/medium.yaml": (
        (
            "memory_leak_threshold_mb: 5.0",
            "memory_leak_threshold_mb: 50.0",
            "metta_ppo: `trainer=simple.medium`",
        ),
    ),
    "exporters/heapwatch/trackers/wandb.py": (
        ('watch._exporter.add_sink(CycleLogger("wandb", log))', "pass", "metta_ppo: Wandb"),
    ),
    "exporters/heapwatch/collectors/bodies.py": (
        ("/ _MEGABYTE,", "/ 1000,", "walker: `walker_system_memory_mb`"),
    ),
    "exporters/heapwatch/http/status.py": (
        (
            '"cpu_percent": None if cpu is None else round(100 * cpu, 2)',
            '"cpu_percent": None',
            "walker: `/performance_status`",
        ),
        (
            "alerts.append(threshold_alert(component, level, own) if own else None)",
            "pass",
            "walker: alerts in the status",
        ),
        (
            "alerts.append(threshold_alert(component, level, own) if own else None)",
            "pass",
            "fire_dqn: unbounded losses",
        ),
    ),
    "examples/walker/leaking.py": (
        (
            "self._ecosystem.spare_parts.extend(self._part() for _ in range(units))",
            "self._leak_unknown(units)",
            "walker: leaking bodies",
        ),
    ),
    "exporters/heapwatch/collectors/process.py": (
        (
            "lambda used: used.virtual",
            "lambda used: used.resident",
            "erl_trading: RSS and VMS",
        ),
        ('usage["trainer"].resident + workers_hold + free_memory(proc)', "None", "erl_trading: `free -h`"),
    ),
    "exporters/heapwatch/report/findings.py": (
        ('return f"{at}: After {point.phase}"', "return at", "erl_trading: the trend across"),
        ("held.nbytes >= large_bytes", "held.nbytes >= 1e9", "erl_trading: the largest objects"),
        (
            "filled=cycles.series(lambda point: point.bounded_bytes) if last.buffers else (),",
            "filled=(),",
            "erl_trading: scenario 4",
        ),
        ('limit=last.growth_limit("memory", "trainer", unit),', "limit=None,", "fire_dqn: memory constant"),
    ),
    "exporters/heapwatch/report/document.py": (
        ("        _growth(report),\n", "", "erl_trading: growth since"),
        (
            "Remedy: store `tensor.detach().cpu()`",
            "Remedy: store `tensor.clone()`",
            "fire_dqn: they are named",
        ),
    ),
    "exporters/heapwatch/collectors/buffers.py": (
        ('"trainer_buffer_capacity_bytes"', '"trainer_buffer_full_bytes"', "erl_trading: `Buffer not ready"),
        ('"trainer_buffer_graph_tensors"', '"trainer_buffer_graphs"', "fire_dqn: tensors with gradients"),
    ),
    "exporters/heapwatch/report/interval.py": (
        (
            '["LEAK FOUND:", *finding_lines(report.finding, report.unit)]',
            '["LEAK FOUND:"]',
            "erl_trading: what to report: phase",
        ),
        ("    if leaking:\n", "    if False:\n", "metta_ppo: `WARNING: Potential"),
    ),
    "exporters/heapwatch/report/judgement.py": (
        ("increasing by {count} each {unit}", "increasing each {unit}", "erl_trading: scenario 1"),
    ),
    "exporters/heapwatch/collectors/declared.py": (
        (
            'log.warning("%s: %d are alive, %d expected", name, alive, expected)',
            "pass",
            "erl_trading: scenario 3",
        ),
    ),
    "examples/erl_trading/leaking.py": (
        (
            '            "environments": self.environments,\n',
            "",
            "erl_trading: tracemalloc",
            "erl_trading: old environments",
        ),
    ),
    "exporters/heapwatch/watch.py": (
        (
            "self._exporter.sample_sizes_every(interval, ",
            "self._exporter.sample_sizes_every(2 * interval, ",
            "metta_ppo: sizes every",
        ),
    ),
    "examples/fire_dqn/agent.py": (
        ("self.rewards = bounded((), KEPT_HISTORY)", "pass", "fire_dqn: `cleanup_memory()`"),
        (
            "transition.state.detach().cpu(), ",
            "transition.state + torch.zeros(1, requires_grad=True), ",
            "fire_dqn: tensors detached",
        ),
    ),
    "exporters/heapwatch/housekeeping.py": (('pyplot.close("all")', "pass", "fire_dqn: figures closed"),),
    "exporters/heapwatch/explain/levels.py": (
        ("`tensor.detach().cpu()` before storing", "`tensor.clone()` before storing", "fire_dqn: what to do"),
    ),
}
CHANGES = tuple(
    Change(file, old, new, tuple(rows)) for file, changes in _BY_FILE.items() for old, new, *rows in changes
)
