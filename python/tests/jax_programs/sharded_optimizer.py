"""Adam with a split state (ZeRO): gradients are scattered, the new parameters gathered. All state is donated."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh


def lower(devices):
    mesh = make_mesh(devices, data=8)
    split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

    def step(params, mean, square, x, y):
        def loss(p):
            return jnp.mean((jax.nn.relu(x @ p["up"]) @ p["down"] - y) ** 2)

        def update(p, m, v, g):
            g = jax.lax.with_sharding_constraint(g, split)
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            change = 1e-3 * m / (jnp.sqrt(v) + 1e-8)
            return p - jax.lax.with_sharding_constraint(change, whole), m, v

        gradients = jax.grad(loss)(params)
        new = {name: update(params[name], mean[name], square[name], gradients[name]) for name in params}
        return tuple({name: values[i] for name, values in new.items()} for i in range(3))

    shapes = {"up": (64, 128), "down": (128, 64)}
    params = {name: abstract(mesh, shape) for name, shape in shapes.items()}
    state = {name: abstract(mesh, shape, "data") for name, shape in shapes.items()}
    return jax.jit(step, donate_argnums=(0, 1, 2), out_shardings=(whole, split, split)).lower(
        params, state, state, abstract(mesh, (64, 64), "data"), abstract(mesh, (64, 64), "data"))
