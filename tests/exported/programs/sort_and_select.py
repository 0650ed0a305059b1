"""Sorts along a split dimension and along a whole one, and picks the largest."""

import jax
import jax.numpy as jnp

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, rows=8)

    def select(x):
        down = jnp.sort(x, axis=0)
        values, places = jax.lax.top_k(x, 4)
        order = jnp.argsort(x.sum(1))
        return down, values, places, x[order[:8]]

    return jax.jit(select).lower(abstract(mesh, (128, 64), "rows"))
