"""Programs: generators of `(held, dropped, watch)` that yield after each change."""

import threading


def in_threads(train, shared, held, dropped, watch):
    """The steps of a training that three threads do as well; those declare their steps."""
    stopped = threading.Event()

    def run(name):
        for _ in train(shared, stopped, held, name, dropped, watch.step):
            pass

    threads = [threading.Thread(target=run, args=[f"thread{at}"], daemon=True) for at in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield from train(shared, stopped, held, "main", dropped, lambda: None)
    finally:
        stopped.set()
        for thread in threads:
            thread.join(60)


class Item:
    """Something that a program holds."""
