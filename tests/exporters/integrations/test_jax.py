"""A loop in pure JAX under the one line of docs/frameworks.md."""

import jax
import pytest
from jax import numpy as jnp

import heapwatch
from heapwatch.collectors.readings import Readings

pytestmark = pytest.mark.slow


def rollout(parameters, key):
    """Everything in one compiled call, as in PureJaxRL."""

    def step(state, key):
        action = jnp.tanh(parameters @ state)
        state = state + 0.1 * action + 0.01 * jax.random.normal(key, state.shape)
        return state, -(state**2).sum()

    _, rewards = jax.lax.scan(step, jnp.ones(8), jax.random.split(key, 50))
    return rewards.mean()


def update(parameters, key):
    return parameters + 0.01 * jax.grad(rollout)(parameters, key)


def test_a_pure_jax_loop(size_of):
    train_step = jax.jit(update)
    parameters, key = jnp.zeros((8, 8)), jax.random.key(0)
    compiled = str(jax.make_jaxpr(update)(parameters, key))
    with heapwatch.start("brax", port=0, interval=0.01) as watch:
        watch.size("parameters", lambda: parameters)
        for _ in range(20):
            key, now = jax.random.split(key)
            parameters = train_step(parameters, now)
            watch.step()
        point = watch.exporter.safe_point
        point.sample_now(*(task.sampler for task in point.tasks))
        seen = Readings(watch.exporter.snapshots.take(30).families)

    assert "callback" not in compiled
    assert str(jax.make_jaxpr(update)(parameters, key)) == compiled
    assert train_step._cache_size() == 1
    assert seen.value("trainer_progress_total", unit="step") == 20
    assert seen.value("trainer_jax_compiled_programs") > 0
    assert size_of(seen, "parameters") > 8 * 8 * 4
    assert seen.value("trainer_object_size_error_bytes", object="parameters") == 0
