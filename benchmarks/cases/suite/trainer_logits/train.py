"""Evaluates a language model with the Transformers trainer."""

import tempfile
import time

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

VOCABULARY = 1000


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        time.sleep(0.02)
        tokens = torch.randint(VOCABULARY, (4,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, input_ids, labels=None):
        logits = self.head(self.embedding(input_ids))  # LEAK
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return {"loss": loss, "logits": logits}


def accuracy(evaluated):
    return {"accuracy": float((evaluated.predictions.argmax(-1) == evaluated.label_ids).mean())}


arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_eval_batch_size=8,
    prediction_loss_only=False,
    disable_tqdm=True,
    report_to=[],
    use_cpu=True,
)
trainer = Trainer(model=Model(), args=arguments, eval_dataset=Texts(), compute_metrics=accuracy)
print(trainer.evaluate())  # LEAK
