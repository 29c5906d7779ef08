"""What the callbacks of both Lightning packages do: `lightning` and `pytorch_lightning`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heapwatch.integrations.session import Adapter, Options, Session
from heapwatch.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Unpack


class LightningHooks(Adapter):
    """Watches `fit`: the module, its optimizers and buffers, steps and epochs, training and validation.

    Args:
        watch: a running watch; by default one is started with `fit` and stopped with it.
        options: `name=` (by default `lightning`), `record=`, `port=` and the others of
            `heapwatch.integrations.session.Options`.

    """

    def __init__(self, watch: Watch | None = None, **options: Unpack[Options]) -> None:
        self._session = Session("lightning", "lightning", watch, **options)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Start watching what the module keeps."""
        session = self._session
        session.begin()
        session.size("module.state_dict", pl_module.state_dict)
        session.find_buffers(pl_module)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Measure the optimizers, which exist now."""
        for index, optimizer in enumerate(trainer.optimizers):
            self._session.size(f"optimizer{index or ''}.state_dict", optimizer.state_dict)
        self._session.start_at("step", trainer.global_step)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """The phase `train` begins."""
        self._session.phase("train")

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count a step."""
        self._session.count("step", trainer.global_step)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """The phase `validate` begins."""
        self._session.phase("validate")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """The phase `train` continues."""
        self._session.phase("train")

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Count an epoch."""
        self._session.phase(None)
        self._session.count("epoch", trainer.current_epoch + 1)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Stop watching."""
        self._session.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Stop watching a run that failed."""
        self._session.end()
