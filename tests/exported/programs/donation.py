"""Donated arguments: one that a result reuses, one of another type, one that no result can take, one that is not used."""

import jax
import jax.numpy as jnp

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, data=8)

    def update(state, cache, noise, spare):
        return {"w": state["w"] * 0.9, "n": state["n"] + 1}, (cache @ noise).astype(jnp.bfloat16)

    state = {"w": abstract(mesh, (512, 256), "data"), "n": abstract(mesh, (), dtype=jnp.int32)}
    return jax.jit(update, donate_argnums=(0, 1, 2, 3)).lower(
        state, abstract(mesh, (256, 256), "data"), abstract(mesh, (256, 384)), abstract(mesh, (64,), "data"))
