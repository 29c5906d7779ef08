import pytest

pytestmark = pytest.mark.slow


def test_a_trainer_with_its_model_and_log(exposed, tmp_path, size_of):
    # not at the top: each worker collects all tests, and these take seconds
    import torch
    from transformers import Trainer, TrainingArguments

    from heapwatch.integrations.transformers import HeapwatchCallback

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = torch.nn.Linear(8, 1)

        def forward(self, x, labels=None):
            y = self.network(x).squeeze(-1)
            return {"loss": ((y - labels) ** 2).mean(), "logits": y}

    data = [{"x": torch.ones(8), "labels": torch.tensor(1.0)} for _ in range(16)]
    arguments = TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=2, per_device_train_batch_size=4, eval_strategy="epoch",
        report_to=[], save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(Model(), arguments, train_dataset=data, eval_dataset=data)
    trainer.add_callback(HeapwatchCallback(port=0))
    trainer.train()
    seen = exposed[-1]
    assert seen.value("trainer_progress_total", unit="step") == 8
    assert seen.value("trainer_progress_total", unit="epoch") == 2
    assert size_of(seen, "model.state_dict") >= 36
    assert "train" in seen.by("trainer_phase_end_resident_memory_bytes", "phase")
