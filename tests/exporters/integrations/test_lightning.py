from importlib import import_module

import pytest

pytestmark = pytest.mark.slow

# Imported by the tests, not at the top: each worker collects all tests, and these packages take seconds.
PACKAGES = {
    "lightning.pytorch": "heapwatch.integrations.lightning",
    "pytorch_lightning": "heapwatch.integrations.pytorch_lightning",
}


class Steps:
    def prepare(self):
        import torch

        self.network = torch.nn.Linear(100, 10)
        return self

    def training_step(self, batch, _):
        return self.network(batch).mean()

    def validation_step(self, batch, _):
        self.log("loss", self.network(batch).mean())

    def configure_optimizers(self):
        import torch

        return torch.optim.Adam(self.parameters())


def fit(package, callback, steps, epochs=2, done=0):
    import torch
    from torch.utils.data import DataLoader

    module = type("Module", (steps, package.LightningModule), {})().prepare()
    loader = DataLoader(torch.zeros(12, 100), batch_size=4)
    trainer = package.Trainer(
        max_epochs=done + epochs, callbacks=[callback], logger=False, enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False, accelerator="auto", devices=1, num_sanity_val_steps=0,
    )  # fmt: skip
    trainer.fit_loop.epoch_progress.current.processed = done
    trainer.fit(module, loader, loader)


@pytest.fixture(params=PACKAGES)
def package(request):
    return import_module(request.param), import_module(PACKAGES[request.param]).HeapwatchCallback


def test_a_module_with_its_optimizer(exposed, package, size_of):
    pl, callback = package
    fit(pl, callback(port=0), Steps)
    seen = exposed[-1]
    assert seen.value("trainer_progress_total", unit="step") == 6
    assert seen.value("trainer_progress_total", unit="epoch") == 2
    assert size_of(seen, "module.state_dict") >= 4040
    assert size_of(seen, "optimizer.state_dict") >= 8080
    assert set(seen.by("trainer_phase_end_resident_memory_bytes", "phase")) == {"train", "validate"}


def test_epochs_of_before_a_resumption_are_no_progress_of_the_run(exposed, package):
    pl, callback = package
    fit(pl, callback(port=0), Steps, done=10)
    assert exposed[-1].value("trainer_progress_total", unit="epoch") == 2


def test_a_run_that_fails_stops_being_watched(exposed, package):
    class Broken(Steps):
        def training_step(self, batch, _):
            raise RuntimeError("no")

    pl, callback = package[0], package[1](port=0)
    with pytest.raises(RuntimeError, match="no"):
        fit(pl, callback, Broken)
    assert callback.watch is None
    assert exposed
