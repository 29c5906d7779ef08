from heapwatch.collectors import allocator
from heapwatch.collectors.allocator import AllocatorCollector
from heapwatch.measure.process import memory
from tests.exporters.exposed import value


def now():
    families = list(AllocatorCollector().collect())
    return tuple(
        value(families, f"trainer_{name}")
        for name in ("allocator_used_bytes", "allocator_retained_bytes", "python_allocated_blocks")
    )


def test_what_is_allocated_is_used_and_what_is_freed_is_retained():
    used, _, blocks = now()
    ballast = [bytes(2000) for _ in range(50_000)]
    pins = ballast[::50]
    full, retained, _ = now()  # it may have taken what was free before
    assert full > used + 90_000_000
    del ballast
    after = now()
    assert after[0] < used + 20_000_000
    assert after[1] > retained + 50_000_000
    small = [object() for _ in range(50_000)]
    assert now()[2] > blocks + 49_000
    assert (len(pins), len(small)) == (1000, 50_000)


def test_memory_that_malloc_maps_by_itself_is_used():
    used, _, _ = now()
    big = bytearray(300_000_000)
    assert now()[0] > used + 290_000_000
    assert len(big) == 300_000_000


def test_without_glibc_only_python_tells(monkeypatch):
    monkeypatch.setattr(memory, "_mallinfo2", lambda: None)
    used, retained, blocks = now()
    assert (used, retained) == (None, None)
    assert blocks > 0


def test_a_costly_read_is_made_seldom(monkeypatch, clock):
    reads = []

    def read():
        reads.append(clock.now)
        clock.now += 0.02
        return 1, 2

    monkeypatch.setattr(allocator, "malloc_bytes", read)
    collector = AllocatorCollector(clock)
    began = clock.now
    while clock.now < began + 100:
        assert value(collector.collect(), "trainer_allocator_used_bytes") == 1
        clock.now += 1
    assert len(reads) <= 11
