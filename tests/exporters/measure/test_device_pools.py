import sys
import types

import jax
import pytest

from heapwatch.measure.device_pools import Pool, jax_pools, torch_pools


def device(number, statistics, **attributes):
    return types.SimpleNamespace(id=number, memory_stats=lambda: statistics, **attributes)


def backends(monkeypatch, **clients):
    bridge = types.SimpleNamespace(
        _backends={
            platform: types.SimpleNamespace(platform=platform, local_devices=lambda held=devices: held)
            for platform, devices in clients.items()
        }
    )
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)


def test_the_pools_of_jax_by_device(monkeypatch):
    backends(
        monkeypatch,
        cpu=[device(0, None)],
        cuda=[
            device(8, {"bytes_in_use": 10, "pool_bytes": 900}, local_hardware_id=0),
            device(1, {"bytes_in_use": 20}),  # without a pool
            device(2, None),
        ],
    )

    assert jax_pools() == {0: Pool(10, 900), 1: Pool(20, 20)}


def test_a_backend_is_not_made(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax._src.xla_bridge", raising=False)
    assert jax_pools() == {}
    backends(monkeypatch)
    assert jax_pools() == {}


def test_the_real_jax_on_a_cpu_has_no_pools():
    jax.numpy.zeros(1)

    assert jax_pools() == {}


@pytest.mark.parametrize("torch", [None, types.SimpleNamespace()])
def test_without_cuda(monkeypatch, torch):
    monkeypatch.setitem(sys.modules, "torch", torch)

    assert torch_pools() == {}
