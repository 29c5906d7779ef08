"""PyTorch Lightning: `Trainer(callbacks=[HeapwatchCallback()])`."""

from lightning.pytorch.callbacks import Callback

from heapwatch.integrations.session import LightningHooks


class HeapwatchCallback(LightningHooks, Callback):
    """Watches `fit`; its arguments are those of `heapwatch.integrations.session.Adapter`."""
