"""A training step with the older partitioner; nobody says how the results are split."""

import jax
import jax.numpy as jnp

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"
SHARDY = False


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)

    def loss(params, x):
        hidden = jax.nn.relu(x @ params["up"])
        return jnp.mean((hidden @ params["down"] - x) ** 2)

    def step(params, x):
        value, gradients = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    params = {"up": abstract(mesh, (256, 1024), None, "model"), "down": abstract(mesh, (1024, 256), "model")}
    return jax.jit(step).lower(params, abstract(mesh, (64, 256), "data"))
