"""Transformers' Trainer with a small GPT-2 of random weights on random tokens."""

import tempfile
import time

import options
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from heapwatch.integrations.transformers import HeapwatchCallback

args, _ = options.parse()


class RandomTokens(torch.utils.data.Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        tokens = torch.randint(1000, (64,))
        return {"input_ids": tokens, "labels": tokens}


class TimeLimit(TrainerCallback):
    deadline = time.monotonic() + 60 * args.minutes

    def on_step_end(self, arguments, state, control, **kwargs):
        control.should_training_stop = time.monotonic() > self.deadline


class PredictionTrainer(Trainer):
    """Keeps predictions for a metric that is computed at the end."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.predictions = []

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **kwargs)
        if args.leak and self.state.global_step % 20 == 0:
            self.predictions.append(outputs["logits"].detach())
        return (loss, outputs) if return_outputs else loss


model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_positions=64, n_embd=128, n_layer=2, n_head=2))
with tempfile.TemporaryDirectory() as folder:
    trainer = PredictionTrainer(
        model=model,
        args=TrainingArguments(
            output_dir=folder, use_cpu=True, per_device_train_batch_size=8, max_steps=1_000_000,
            logging_steps=100, save_strategy="no", report_to=[], disable_tqdm=True,
        ),
        train_dataset=RandomTokens(),
        callbacks=[HeapwatchCallback(), TimeLimit()],
    )  # fmt: skip
    trainer.train()
