"""Values whose sizes the axes do not divide: they are padded on the way."""

import jax
import jax.numpy as jnp

from .common import abstract, constrain, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)

    def mix(x, w):
        y = constrain(mesh, x @ w, "data", "model")
        y = constrain(mesh, jnp.concatenate([y, y[:3]]), ("data", "model"))
        return jnp.sum(y, axis=0), constrain(mesh, y.T, "model")

    return jax.jit(mix).lower(abstract(mesh, (10, 24), "data", "model"), abstract(mesh, (24, 37), "model"))
