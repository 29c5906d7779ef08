import pytest

from heapwatch.measure.gpu.device_pools import Pool
from heapwatch.measure.gpu.parts import GpuParts, Processes

TOTAL, USED = 80_000, 30_000


def divide(parts=None, processes=None, **pools):
    held = {library: pool for library, pool in pools.items() if pool is not None}
    return (parts or GpuParts()).divide(TOTAL, USED, held, processes)


@pytest.mark.parametrize("torch", [None, Pool(500, 2000)])
@pytest.mark.parametrize("jax", [None, Pool(100, 9000)])
@pytest.mark.parametrize("cupy", [None, Pool(40, 300)])
@pytest.mark.parametrize(
    "processes",
    [
        None,
        Processes(None, 0, 300),
        Processes(12_000),
        Processes(12_000, 1000, 4000),
        Processes(0, 1000),
        Processes(1500),  # less than what torch holds: read before it
        Processes(29_000, 4000, 4000),  # more than is in use
    ],
)
def test_the_parts_add_up_whatever_is_known(torch, jax, cupy, processes):
    parts = divide(torch=torch, jax=jax, cupy=cupy, processes=processes)

    assert sum(parts.values()) == TOTAL
    assert all(value >= 0 for value in parts.values())


def test_what_is_not_used_or_not_known_has_no_part():
    assert divide() == {"free": 50_000, "unattributed": USED}
    assert set(divide(jax=Pool(1, 2))) == {"free", "jax_in_use", "jax_cached", "unattributed"}


def test_a_pool_of_each_library_is_no_other_pool():
    parts = GpuParts()
    divide(parts, processes=Processes(600))
    pools = {"torch": Pool(1000, 2000), "jax": Pool(100, 9000), "cupy": Pool(40, 300)}
    found = divide(parts, processes=Processes(600 + 2000 + 9000 + 300 + 70), **pools)
    assert (found["cupy_in_use"], found["cupy_cached"]) == (40, 260)
    assert (found["context"], found["other_pools"]) == (600, 70)


def test_pools_that_hold_more_than_is_in_use_have_no_parts_this_time():
    assert divide(torch=Pool(500, USED + 1)) == {}


def test_the_context_is_the_least_that_was_seen():
    parts = GpuParts()
    first = divide(parts, torch=Pool(10, 100), processes=Processes(700))
    assert (first["context"], first["other_pools"]) == (600, 0)
    later = divide(parts, torch=Pool(10, 5000), processes=Processes(6000))
    assert (later["context"], later["other_pools"]) == (600, 400)
    smaller = divide(parts, torch=Pool(10, 5000), processes=Processes(5500))
    assert (smaller["context"], smaller["other_pools"]) == (500, 0)


def test_a_process_that_holds_nothing_yet_has_no_context():
    parts = GpuParts()
    assert "context" not in divide(parts, processes=Processes(0, 1000))
    assert divide(parts, processes=Processes(700))["context"] == 700
