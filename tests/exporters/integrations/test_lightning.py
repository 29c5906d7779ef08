from collections import deque

import lightning.pytorch
import pytest
import pytorch_lightning
import torch
from torch.utils.data import DataLoader

import heapwatch.integrations.lightning
import heapwatch.integrations.pytorch_lightning

PACKAGES = {
    "lightning": (lightning.pytorch, heapwatch.integrations.lightning.HeapwatchCallback),
    "pytorch_lightning": (pytorch_lightning, heapwatch.integrations.pytorch_lightning.HeapwatchCallback),
}


class Steps:
    def prepare(self):
        self.network = torch.nn.Linear(100, 10)
        self.replay_buffer = deque(maxlen=1000)
        return self

    def training_step(self, batch, _):
        self.replay_buffer.append(batch)
        return self.network(batch).mean()

    def validation_step(self, batch, _):
        self.log("loss", self.network(batch).mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def fit(package, callback, steps, epochs=2):
    module = type("Module", (steps, package.LightningModule), {})().prepare()
    loader = DataLoader(torch.zeros(12, 100), batch_size=4)
    package.Trainer(
        max_epochs=epochs, callbacks=[callback], logger=False, enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False, accelerator="cpu", num_sanity_val_steps=0,
    ).fit(module, loader, loader)  # fmt: skip


@pytest.fixture(params=PACKAGES)
def package(request):
    return PACKAGES[request.param]


def test_a_module_with_its_optimizer_and_buffer(exposed, package):
    pl, callback = package
    fit(pl, callback(port=0), Steps)
    seen = exposed[-1]
    assert seen.value("trainer_progress_total", unit="step") == 6
    assert seen.value("trainer_progress_total", unit="epoch") == 2
    assert seen.value("trainer_buffer_items", buffer="replay_buffer") == 6
    assert seen.value("trainer_object_size_bytes", object="module.state_dict") >= 4040
    assert seen.value("trainer_object_size_bytes", object="optimizer.state_dict") >= 8080
    assert set(seen.by("trainer_phase_end_resident_memory_bytes", "phase")) == {"train", "validate"}


def test_a_run_that_fails_stops_being_watched(exposed, package):
    class Broken(Steps):
        def training_step(self, batch, _):
            raise RuntimeError("no")

    pl, callback = package[0], package[1](port=0)
    try:
        fit(pl, callback, Broken)
    except RuntimeError:
        assert callback.watch is None
        assert exposed
    else:
        raise AssertionError("the failure was swallowed")
