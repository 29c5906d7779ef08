"""Ray Tune: `Tuner(watched(train), …)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from ray import tune

from heapwatch.integrations.session import Options, Session
from heapwatch.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Unpack

Trainable = Callable[[Mapping[str, Any]], Any]


def watched(train: Callable[[Mapping[str, Any], Watch], Any], **options: Unpack[Options]) -> Trainable:
    """Watch each trial of a function trainable, in the process that runs it.

    `train(config, watch)` gets the watch of its trial, to count steps and to declare buffers; the trial's id
    is the label `run`. Each trial of a machine uses the next free port.

    Args:
        train: the function, with the watch as its second argument.
        options: `name=`, `record=`, `port=` and the others of `heapwatch.integrations.session.Options`.

    """

    @wraps(train)
    def trial(config: Mapping[str, Any]) -> Any:
        labelled: Options = {"run": tune.get_context().get_trial_id() or "", **options}
        session = Session("ray-tune", "ray-tune", None, **labelled)
        session.begin()
        try:
            return train(config, session.watch or Watch(options.get("name", "ray-tune")))
        finally:
            session.end()

    del trial.__wrapped__  # Tune counts the arguments of what it runs
    return trial
