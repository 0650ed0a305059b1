"""A program that `jax.export` wrote: the serialized form, with the module inside."""

import jax
import jax.numpy as jnp

from .common import abstract, constrain, make_mesh

TOPOLOGY = "v5e:2x4"
SERIALIZED = True


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)

    def layer(w, x):
        hidden = constrain(mesh, jax.nn.gelu(x @ w["up"]), "data", "model")
        return constrain(mesh, hidden @ w["down"], "data")

    w = {"up": abstract(mesh, (128, 512), None, "model"), "down": abstract(mesh, (512, 128), "model")}
    x = abstract(mesh, (64, 128), "data")
    exported = jax.export.export(jax.jit(layer), platforms=["tpu"])(w, x)
    return exported, jax.jit(exported.call).lower(w, x)
