"""Gradients of several microbatches are added up in a scan before one step."""

import jax
import jax.numpy as jnp

from .common import abstract, constrain, make_mesh, shardings_of

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, data=4, model=2)

    def loss(params, x, y):
        hidden = jnp.tanh(x @ params["in"])
        return jnp.mean((hidden @ params["out"] - y) ** 2)

    def step(params, xs, ys):
        def add(total, batch):
            x, y = (constrain(mesh, one, "data") for one in batch)
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, x, y)), None

        total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), (xs, ys))
        return jax.tree.map(lambda p, g: p - 0.1 / 5 * g, params, total)

    params = {"in": abstract(mesh, (128, 512), None, "model"), "out": abstract(mesh, (512, 64), "model")}
    return jax.jit(step, donate_argnums=0, out_shardings=shardings_of(params)).lower(
        params, abstract(mesh, (5, 64, 128), None, "data"), abstract(mesh, (5, 64, 64), None, "data"))
