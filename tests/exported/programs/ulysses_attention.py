"""Attention with a split sequence: heads are exchanged for positions before it and back after it, on three axes."""

import jax
import jax.numpy as jnp

from .common import abstract, constrain, make_mesh

TOPOLOGY = "v5p:2x2x2"


def lower(devices):
    mesh = make_mesh(devices, data=2, sequence=2, model=2)

    def attend(x, w):
        qkv = jnp.einsum("btd,cdhk->cbthk", x, w)
        q, k, v = constrain(mesh, qkv, None, "data", None, ("sequence", "model"))
        scores = jax.nn.softmax(jnp.einsum("bqhk,bshk->bhqs", q, k) / 8, -1)
        out = jnp.einsum("bhqs,bshk->bqhk", scores, v)
        return constrain(mesh, out, "data", "sequence", "model")

    return jax.jit(attend).lower(abstract(mesh, (4, 256, 128), "data", "sequence", dtype=jnp.bfloat16),
                                 abstract(mesh, (3, 128, 8, 64), None, None, "model", dtype=jnp.bfloat16))
