"""Attention on a split sequence: keys and values travel around the ring."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh


def lower(devices):
    mesh = make_mesh(devices, ring=8)
    spec = P(None, "ring", None)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec, spec, spec), out_specs=spec)
    def attention(q, k, v):
        around = [(i, (i + 1) % 8) for i in range(8)]

        def turn(state, _):
            k, v, total, weight, top = state
            scores = jnp.einsum("bqd,bkd->bqk", q, k)
            now = jnp.maximum(top, scores.max(-1))
            p = jnp.exp(scores - now[..., None])
            scale = jnp.exp(top - now)
            total = total * scale[..., None] + jnp.einsum("bqk,bkd->bqd", p, v)
            weight = weight * scale + p.sum(-1)
            k = jax.lax.ppermute(k, "ring", around)
            v = jax.lax.ppermute(v, "ring", around)
            return (k, v, total, weight, now), None

        start = (k, v, jnp.zeros_like(q), jnp.zeros_like(q[..., 0]), jnp.full_like(q[..., 0], -1e30))
        (_, _, total, weight, _), _ = jax.lax.scan(turn, start, None, length=8)
        return total / weight[..., None]

    x = abstract(mesh, (2, 128, 16), None, "ring")
    return jax.jit(attention).lower(x, x, x)
