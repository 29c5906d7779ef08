"""The changes of `make documents-mutation`, and which rows have to notice each."""

from typing import NamedTuple

LIMITS = "exporters/heapwatch/analysis/limits.py"
RULES = "prometheus/rules/default_limits.yml"
MONITOR = "exporters/heapwatch/cli/monitor.py"


class Change(NamedTuple):
    """A text of a file and what replaces it everywhere there; the names of the rows, or how they begin."""

    file: str
    old: str
    new: str
    rows: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}: {self.old.strip()!r} -> {self.new.strip()!r} ({'; '.join(self.rows)})"


CHANGES = (
    Change(
        LIMITS,
        '{"warning": 600e6, "critical": 900e6',
        '{"warning": 6000e6, "critical": 9000e6',
        ("walker: aggressive thresholds",),
    ),
    Change(
        RULES,
        '6e+08 * job:trainer:profile{profile="walker-aggressive"}',
        '6e+09 * job:trainer:profile{profile="walker-aggressive"}',
        ("walker: aggressive thresholds",),
    ),
    Change(
        RULES,
        'labels: {resource: bodies, component: all, per: minute, profile: ""}\n        expr: 10 *',
        'labels: {resource: bodies, component: all, per: minute, profile: ""}\n        expr: 9999 *',
        ("walker: growth above 10 bodies",),
    ),
    Change(LIMITS, 'MEMORY: {"minute": 20e6}', 'MEMORY: {"minute": 200e6}', ("walker: growth above 20 MB",)),
    Change(
        LIMITS,
        'Component("bodies", "static"): {"critical": 300}',
        'Component("bodies", "static"): {"critical": 3000}',
        ("walker: static bodies",),
    ),
    Change(
        MONITOR,
        '"walker-aggressive" if arguments.aggressive_thresholds else None',
        "None",
        ("walker: `start_monitoring.sh",),
    ),
    Change(
        MONITOR,
        "if limit is not None},\n        BODIES",
        "if limit is None and False},\n        BODIES",
        ("walker: its options",),
    ),
    Change(
        MONITOR,
        "for severity, limit in bodies.items() if limit is not None",
        "for severity, limit in bodies.items() if limit is None and False",
        ("walker: its options",),
    ),
    Change(MONITOR, "time.sleep(arguments.interval)", "time.sleep(0)", ("walker: its options",)),
    Change(
        "examples/walker/trainer.py",
        "if self.steps % STEPS_PER_CLEANUP == 0:",
        "if False:",
        ("walker: regular cleanup",),
    ),
    Change(
        "examples/walker/health.py",
        "LINE_SECONDS = 20.0",
        "LINE_SECONDS = 2.0",
        ("walker: body types in the log",),
    ),
    Change(
        "examples/walker/ecosystem.py",
        "body.type == b2.b2_staticBody for body",
        "body == self.ground for body",
        ("walker: orphaned bodies",),
    ),
    Change(
        "exporters/heapwatch/http/endpoints.py",
        'if health["training"] != "stalled":',
        "if True:",
        ("walker: Docker: container health",),
    ),
    Change(
        "docker-compose.yml",
        "http://127.0.0.1:7777/readyz",
        "http://127.0.0.1:7777/healthz",
        ("walker: Docker",),
    ),
    Change(
        "dashboards/generator/queries/world.py",
        '_BODIES = select("trainer_bodies")',
        '_BODIES = select("trainer_world_bodies")',
        ("walker: Grafana",),
    ),
    Change(
        "examples/walker/cleaning.py",
        "EMERGENCY_FOOD = 10",
        "EMERGENCY_FOOD = 25",
        ("walker: emergency cleanup",),
    ),
    Change(
        "examples/walker/cleaning.py", "REGULAR_FOOD = 30", "REGULAR_FOOD = 45", ("walker: regular cleanup",)
    ),
    Change(
        "examples/erl_trading/trainer.py",
        'memory_report_interval(1, "generation")',
        'memory_report_interval(10, "generation")',
        ("erl_trading: a report after each generation",),
    ),
    Change(
        "examples/erl_trading/trainer.py",
        "finally:  # also at SIGTERM",
        "except ValueError:",
        ("erl_trading: the final summary",),
    ),
    Change(
        "examples/walker/trainer.py",
        "if self._auto_cleanup and",
        "if False and",
        ("walker: emergency by the trainer itself",),
    ),
    Change(
        "examples/walker/experiment.py",
        "log_memory(watch, run.info.run_id)",
        "pass",
        ("walker: MLflow",),
    ),
    Change(
        "exporters/heapwatch/cli/cleanup.py",
        '"action": arguments.action,',
        '"action": "regular",',
        ("walker: a cleanup by hand",),
    ),
    Change(
        "examples/walker/health.py", "FOOD_WARNING = 30", "FOOD_WARNING = 5000", ("walker: more than 30",)
    ),
    Change(
        "exporters/heapwatch/collectors/gpu.py",
        'yield "trainer_gpu_memory_reserved_bytes", device, pool.held',
        "pass",
        ("erl_trading: GPU memory",),
    ),
    Change(
        "prometheus/rules/limits.yml",
        "max by (job, instance) (last_over_time(trainer_memory_available_bytes[5m]))",
        "max by (job, instance) (last_over_time(trainer_memory_left_bytes[5m]))",
        ("erl_trading: memory left",),
    ),
    Change(
        "exporters/heapwatch/explain/describe.py",
        "self._traced.get(known.path) or site or self._called_at(known, place, owner)",
        "None",
        ("erl_trading: tracemalloc",),
    ),
    Change(
        LIMITS,
        'Component("gpu_memory", ""): {"warning": 20e9}',
        'Component("gpu_memory", ""): {"warning": 200e9}',
        ("erl_trading: GPU memory stable",),
    ),
    Change(
        LIMITS,
        '{"generation": 500e6}',
        '{"generation": 5000e6}',
        ("erl_trading: ~500 MB",),
    ),
    Change(
        "examples/erl_trading/trainer.py",
        "self.generation, agents = checkpoint.load()",
        "_, agents = checkpoint.load()",
        ("erl_trading: `--resume`",),
    ),
    Change(
        "exporters/heapwatch/cli/report.py",
        "splitlines()[-_LOG_LINES:]",
        "splitlines()[:_LOG_LINES]",
        ("erl_trading: what to report: the last 50",),
    ),
    Change(
        "exporters/heapwatch/recording/checkpoints.py",
        'parts.append(f"VMS {_gigabytes(now.memory.virtual)}")',
        "pass",
        ("erl_trading: baseline and a snapshot",),
    ),
    Change(
        "exporters/heapwatch/exporter.py",
        "self.memory.read_virtual(), *gpu",
        "self.memory.read_virtual()",
        ("erl_trading: GPU memory, allocated",),
    ),
    Change(
        "examples/erl_trading/trainer.py",
        "self.leaks.in_training(self.best_agent)",
        "pass",
        ("erl_trading: scenario 2",),
    ),
    Change(
        "examples/erl_trading/trainer.py",
        "self.uploads.extend([self.generation] * pending)",
        "pass",
        ("erl_trading: upload queue",),
    ),
    Change(
        "examples/fire_dqn/trainer.py",
        "schedule.every(50, ",
        "schedule.every(7, ",
        ("fire_dqn: every 50 steps",),
    ),
    Change(
        "examples/fire_dqn/trainer.py",
        "schedule.every(100, ",
        "schedule.every(9, ",
        ("fire_dqn: every 100 training steps",),
    ),
    Change(
        "examples/fire_dqn/trainer.py",
        "schedule.every(10, ",
        "schedule.every(2, ",
        ("fire_dqn: every 10 episodes",),
    ),
    Change(
        LIMITS, '"losses"): {"warning": 1001}', '"losses"): {"warning": 1100}', ("fire_dqn: more than these",)
    ),
    Change(
        "prometheus/rules/leak.yml",
        "min_over_time(trainer_buffer_graph_tensors[10m])",
        "min_over_time(trainer_buffer_graphs[10m])",
        ("fire_dqn: they are the leak",),
    ),
    Change(
        "exporters/heapwatch/cli/reporter.py",
        "leaks = self._live.verdicts().alerts()",
        "pass",
        ("fire_dqn: they are in the alerts",),
    ),
    Change(
        "exporters/heapwatch/exporter.py",
        "return reported or headline(explanation)",
        "return headline(explanation)",
        ("fire_dqn: final cleanup",),
    ),
    Change(
        "examples/metta_ppo/trainer.py",
        "per_epoch=1e6 * self.tracking.memory_leak_threshold_mb",
        "per_epoch=5e6",
        ("metta_ppo: `memory_tracking_enabled`",),
    ),
    Change(
        "examples/metta_ppo/configurations/simple/medium.yaml",
        "memory_leak_threshold_mb: 5.0",
        "memory_leak_threshold_mb: 50.0",
        ("metta_ppo: `trainer=simple.medium`",),
    ),
    Change(
        "examples/metta_ppo/trainer.py",
        "log_memory(watch, self.wandb_run)",
        "pass",
        ("metta_ppo: Wandb",),
    ),
    Change(
        "examples/metta_ppo/trainer.py",
        "if getattr(self, name) is not None",
        "if False",
        ("metta_ppo: `wandb_run`, `torch_profiler`",),
    ),
    Change(
        "exporters/heapwatch/trackers/wandb.py",
        'watch.exporter.add_sink(CycleLogger("wandb", log))',
        "pass",
        ("metta_ppo: Wandb",),
    ),
)
