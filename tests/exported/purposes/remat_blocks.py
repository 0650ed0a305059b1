"""Blocks that are recomputed in the backward pass, each a function without a scope: the layer is the weight's folder."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, fsdp=8)

    @jax.checkpoint
    def block(x, p):
        return constrain(mesh, jnp.tanh(jnp.tanh(x @ p["up"]) @ p["down"]), "fsdp")

    def loss(params, x):
        for i in range(4):
            x = block(x, params["blocks"][i])
        return jnp.mean(x ** 2)

    sizes = SIZES[:9]
    params = {"blocks": [split_first(mesh, {"up": (sizes[2 * i], sizes[2 * i + 1]), "down": (sizes[2 * i + 1], sizes[2 * i + 2])}, "fsdp")
                         for i in range(4)]}
    return lower_step(loss, params, abstract(mesh, (BATCH, sizes[0]), "fsdp"))
