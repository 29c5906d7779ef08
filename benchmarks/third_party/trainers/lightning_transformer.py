"""Lightning's own demo model, the LightningTransformer, on random tokens with two DataLoader workers."""

from datetime import timedelta

import options
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.demos import LightningTransformer
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from heapwatch.integrations.lightning import HeapwatchCallback

VOCABULARY = 1000


class RandomTokens(Dataset):
    def __len__(self):
        return 20_000

    def __getitem__(self, index):
        tokens = torch.randint(VOCABULARY, (36,))
        return tokens[:-1], tokens[1:]


class LanguageModel(LightningTransformer):
    def __init__(self, keep):
        super().__init__(vocab_size=VOCABULARY)
        self.keep = keep
        self.epoch_losses = []

    def prepare_data(self):
        """The demo would download its text here."""

    def training_step(self, batch, batch_idx):
        inputs, target = batch
        loss = functional.nll_loss(self(inputs, target), target.reshape(-1))
        if batch_idx % 50 == 0:
            # averaged and cleared at the end of an epoch by those who remember both
            self.epoch_losses.append(loss if self.keep else loss.item())
        self.log("loss", loss)
        return loss

    def on_train_epoch_end(self):
        if not self.keep:
            self.epoch_losses.clear()


if __name__ == "__main__":
    args, _ = options.parse()

    trainer = Trainer(
        accelerator="cpu",
        max_epochs=-1,
        max_time=timedelta(minutes=args.minutes),
        callbacks=[HeapwatchCallback()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(LanguageModel(args.leak), DataLoader(RandomTokens(), batch_size=16, num_workers=2))
