"""JAX arrays that are donated, deleted and made anew by compiled functions."""

import itertools
import weakref

import jax
import jax.numpy as jnp


def jax_arrays(held, dropped, watch):
    update = jax.jit(lambda state, x: state * 0.5 + x, donate_argnums=0)
    held["update"] = update
    state = jnp.zeros((64, 64))
    for count in itertools.count(1):
        state = update(state, jnp.ones((64, 64)))
        held["state"] = state
        held["list"] = [state, jnp.arange(count % 50 + 1)]
        gone = jnp.ones(count % 20 + 1)
        held["gone"] = gone
        gone.delete()
        dropped.append(weakref.ref(gone))
        held["tree"] = {"params": [jnp.zeros(10), {"b": jnp.zeros(3)}]}
        held["gradient"] = jax.grad(lambda x: (x * x).sum())(jnp.ones(4))
        yield
