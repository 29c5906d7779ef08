from collections import deque

import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader

from heapwatch.integrations.lightning import HeapwatchCallback


class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.network = torch.nn.Linear(100, 10)
        self.replay_buffer = deque(maxlen=1000)

    def training_step(self, batch, _):
        self.replay_buffer.append(batch)
        return self.network(batch).mean()

    def validation_step(self, batch, _):
        self.log("loss", self.network(batch).mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def fit(callback, module, epochs=2):
    loader = DataLoader(torch.zeros(12, 100), batch_size=4)
    Trainer(
        max_epochs=epochs, callbacks=[callback], logger=False, enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False, accelerator="cpu", num_sanity_val_steps=0,
    ).fit(module, loader, loader)  # fmt: skip


def test_a_module_with_its_optimizer_and_buffer(exposed):
    fit(HeapwatchCallback(port=0), Module())
    seen = exposed[-1]
    assert seen.value("trainer_progress_total", unit="step") == 6
    assert seen.value("trainer_progress_total", unit="epoch") == 2
    assert seen.value("trainer_buffer_items", buffer="replay_buffer") == 6
    assert seen.value("trainer_object_size_bytes", object="module.state_dict") >= 4040
    assert seen.value("trainer_object_size_bytes", object="optimizer.state_dict") >= 8080
    assert set(seen.by("trainer_phase_end_resident_memory_bytes", "phase")) == {"train", "validate"}


def test_a_run_that_fails_stops_being_watched(exposed):
    class Broken(Module):
        def training_step(self, batch, _):
            raise RuntimeError("no")

    callback = HeapwatchCallback(port=0)
    try:
        fit(callback, Broken())
    except RuntimeError:
        assert callback.watch is None
        assert exposed
    else:
        raise AssertionError("the failure was swallowed")
