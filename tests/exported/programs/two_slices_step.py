"""A training step over two slices: the batch is split over the network between them and over one axis inside."""

import jax
import jax.numpy as jnp

from .common import abstract, make_mesh_over_slices, shardings_of

TOPOLOGY, SLICES = "v5e:2x4", 2


def lower(devices):
    mesh = make_mesh_over_slices(devices, SLICES, data=2, model=4)

    def loss(params, x):
        hidden = jax.nn.relu(x @ params["up"])
        return jnp.mean((hidden @ params["down"]) ** 2)

    def step(params, x):
        value, gradients = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    params = {"up": abstract(mesh, (256, 1024), None, "model"), "down": abstract(mesh, (1024, 256), "model")}
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings_of(params), None)).lower(
        params, abstract(mesh, (64, 256), ("dcn", "data")))
