import sys
import threading

from heapwatch.measure.introspection.first_items import first_items


def test_the_first_items_of_a_container_that_another_thread_changes():
    """Fails with an iterator that is made in one instruction and used in the next."""
    members, items, stopped = set(range(100)), {at: at for at in range(100)}, threading.Event()

    def change():
        while not stopped.is_set():
            members.add(-1)
            items[-1] = 0
            members.discard(-1)
            del items[-1]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(20_000):
            assert len(first_items(members, 3)) == 3
            assert len(first_items(items, 3, dict.items, reversed)) == 3
    finally:
        stopped.set()
        thread.join(10)
        sys.setswitchinterval(interval)


def test_items_from_a_position_on():
    values = dict(enumerate("abcde"))
    assert first_items(values, 2, dict.values, start=1) == ["b", "c"]
    assert first_items(values, 2, dict.values, reversed, start=1) == ["d", "c"]
    assert first_items([], 2) == []
