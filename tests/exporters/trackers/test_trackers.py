"""Each logger against its real library, offline: read back from its files, for W&B as its run took it."""

import math

import pytest

import heapwatch

pytestmark = pytest.mark.slow

SIZE_MB = 3.0


@pytest.fixture
def trained():
    """Logs to a tracker for as long as a small training of three epochs lasts."""

    def train(log, after_epoch=lambda epoch: None):
        stats = []
        with heapwatch.Watch("metta", interval=0.001, budget=1.0) as watch:
            watch.size("trainer.stats", lambda: stats)
            log(watch)
            sink = watch.exporter._journal.sinks[0]
            for epoch in range(1, 4):
                stats.append(bytearray(1_000_000))
                watch.exporter.safe_point.sample_now(watch.exporter.sizes)
                watch.progress("epoch")
                watch.exporter._journal._drain(False)
                after_epoch(epoch)
        assert sink._recent == {}
        assert watch.exporter.failures.counts["journal"] == 0

    return train


def test_weights_and_biases(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_CONSOLE", "off")
    import wandb

    from heapwatch.trackers.wandb import log_memory

    run = wandb.init(mode="offline", dir=str(tmp_path), project="p")
    rows, row, log = [], {}, run.log

    def noted(values, commit=True):
        """What the run takes, a row at a time; its file is written by a process that may be late."""
        log(values, commit=commit)
        row.update(values)
        if commit:
            rows.append(dict(row))
            row.clear()

    monkeypatch.setattr(run, "log", noted)
    trained(lambda watch: log_memory(watch, run), after_epoch=lambda epoch: run.log({"loss": 1 / epoch}))
    run.finish()
    assert [float(row["loss"]) for row in rows] == [1, 1 / 2, 1 / 3]
    last = {key: float(value) for key, value in rows[-1].items()}
    assert last["memory/cycle"] == 3
    assert last["memory/trainer.stats/size_mb"] == pytest.approx(SIZE_MB, rel=0.01)
    assert last["memory/trainer.stats/growth_mb_per_epoch"] == pytest.approx(1, rel=0.01)
    assert last["memory/rss_mb"] > 10


def test_mlflow(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow import MlflowClient

    from heapwatch.trackers.mlflow import log_memory

    uri = (tmp_path / "mlruns").as_uri()
    client = MlflowClient(uri)
    run = client.create_run(client.create_experiment("p")).info.run_id
    trained(lambda watch: log_memory(watch, run, uri))
    history = client.get_metric_history(run, "memory/trainer.stats/size_mb")
    assert [metric.step for metric in history] == [1, 2, 3]
    assert history[-1].value == pytest.approx(SIZE_MB, rel=0.01)
    (growth, _) = client.get_metric_history(run, "memory/trainer.stats/growth_mb_per_epoch")
    assert growth.value == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("library", ["torch.utils.tensorboard", "tensorboardX"])
def test_tensorboard(trained, tmp_path, library):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from heapwatch.trackers.tensorboard import log_memory

    writer = pytest.importorskip(library).SummaryWriter(str(tmp_path))
    trained(lambda watch: log_memory(watch, writer))
    writer.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    sizes = events.Scalars("memory/trainer.stats/size_mb")
    assert [event.step for event in sizes] == [1, 2, 3]
    assert sizes[-1].value == pytest.approx(SIZE_MB, rel=0.01)
    assert math.isclose(events.Scalars("memory/trainer.stats/growth_mb_per_epoch")[-1].value, 1, rel_tol=0.01)


def test_a_tracker_that_fails_is_counted_and_training_continues():
    from heapwatch.trackers.tensorboard import log_memory

    class Broken:
        def add_scalar(self, *_):
            raise ConnectionError("the server is away")

    with heapwatch.Watch("metta") as watch:
        log_memory(watch, Broken())
        watch.progress("epoch")
    assert watch.exporter.failures.counts["journal"] == 1
