"""PyTorch Lightning, imported as `pytorch_lightning`: `Trainer(callbacks=[HeapwatchCallback()])`."""

from pytorch_lightning.callbacks import Callback

from heapwatch.integrations.session import LightningHooks


class HeapwatchCallback(LightningHooks, Callback):
    """Watches `fit`; its arguments are those of `heapwatch.integrations.session.Adapter`."""
