"""A trainer in a thread, while the main thread sleeps, joins it or serves: `threads KIND`."""

import os
import sys
import threading
import time
from collections.abc import Callable

from tests.harmless.entering.field.programs.apps import asgi
from tests.harmless.entering.field.programs.waiting import show, told


class Training(threading.Thread):
    """Makes weights smaller until the visits are over."""

    is_right = False

    def run(self) -> None:
        weights, is_over = [1.0] * 1000, False
        while not is_over:
            is_over = told(0.02)
            weights = [weight - 0.0002 * weight for weight in weights]
            if len(set(weights)) != 1:
                return
        self.is_right = True


def sleep(training: Training) -> None:
    while training.is_alive():
        time.sleep(5)


def serve(training: Training) -> None:
    from uvicorn import Config, Server

    server = Server(Config(asgi, port=0, log_level="warning"))

    def end() -> None:
        training.join()
        server.should_exit = True

    threading.Thread(target=end).start()
    server.run()


def main(wait: Callable[[Training], None]) -> None:
    training = Training()
    training.start()
    show({"trainer": os.getpid()})
    wait(training)
    training.join()
    assert training.is_right


if __name__ == "__main__":
    main({"sleep": sleep, "join": Training.join, "uvicorn": serve}[sys.argv[1]])
