"""A Lightning module that gathers what its validation steps return."""

import logging
import time
import warnings

import lightning
import torch
from torch import nn

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Critic(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(64, 1024)
        self.validation_step_outputs = []

    def training_step(self, batch, index):
        time.sleep(0.05)
        return self.net(batch).pow(2).mean()

    def validation_step(self, batch, index):
        prediction = self.net(batch)  # LEAK
        output = {"prediction": prediction, "loss": prediction.pow(2).mean()}
        self.validation_step_outputs.append(output)  # LEAK
        time.sleep(0.05)

    def on_validation_epoch_end(self):
        losses = torch.stack([output["loss"] for output in self.validation_step_outputs])
        self.log("loss", losses[-4:].mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


trainer = lightning.Trainer(
    max_epochs=-1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
    accelerator="cpu",
)
data = torch.randn(256, 64)
trainer.fit(
    Critic(),
    torch.utils.data.DataLoader(data, batch_size=64),
    torch.utils.data.DataLoader(data, batch_size=64),
)
