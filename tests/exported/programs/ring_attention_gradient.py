"""Causal ring attention over a split sequence, forward and backward, in bfloat16."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"
STEPS = 4


def attend(q, k, v):
    """q, k, v: [batch, block, heads, width] on a device."""
    here = jax.lax.axis_index("ring")
    forward = [(i, (i + 1) % STEPS) for i in range(STEPS)]
    block = q.shape[1]

    def step(state, i):
        k, v, top, total, out = state
        there = (here - i) % STEPS
        rows = here * block + jnp.arange(block)[:, None]
        columns = there * block + jnp.arange(block)[None, :]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
        scores = jnp.where(rows >= columns, scores, -1e30)
        new_top = jnp.maximum(top, scores.max(-1))
        shift, weights = jnp.exp(top - new_top), jnp.exp(scores - new_top[..., None])
        out = out * shift[..., None] + jnp.einsum("bhqk,bkhd->bhqd", weights, v.astype(jnp.float32))
        total = total * shift + weights.sum(-1)
        k, v = jax.lax.ppermute((k, v), "ring", forward)
        return (k, v, new_top, total, out), None

    b, s, h, d = q.shape
    empty = jnp.full((b, h, s), -1e30), jnp.zeros((b, h, s)), jnp.zeros((b, h, s, d))
    empty = jax.lax.pcast(empty, ("data", "ring"), to="varying")
    (_, _, _, total, out), _ = jax.lax.scan(step, (k, v, *empty), jnp.arange(STEPS))
    return jnp.swapaxes(out / total[..., None], 1, 2).astype(q.dtype)


def lower(devices):
    mesh = make_mesh(devices, data=2, ring=4)
    split = P("data", "ring")
    ring = functools.partial(jax.shard_map, mesh=mesh, in_specs=(split, split, split), out_specs=split)(attend)

    def loss(q, k, v):
        return jnp.sum(ring(q, k, v).astype(jnp.float32) ** 2)

    one = abstract(mesh, (4, 512, 4, 64), "data", "ring", dtype=jnp.bfloat16)
    return jax.jit(jax.grad(loss, argnums=(0, 1, 2))).lower(one, one, one)
