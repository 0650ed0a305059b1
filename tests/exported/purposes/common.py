"""What the programs share. Every size has an odd factor of its own, so that the number of elements of a value tells which
weight it is, however it is split, packed or transposed: devices, layers and positions are powers of two."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp

sys.path.append(str(Path(__file__).resolve().parents[1]))
from programs.common import abstract, constrain, make_mesh, make_mesh_over_slices, shardings_of

__all__ = ["BATCH", "SIZES", "abstract", "attention", "attention_shapes", "constrain", "descend", "jax", "jnp", "lower_step",
           "make_mesh", "make_mesh_over_slices", "normalized", "shardings_of", "split_first"]

# Multiples of 8 with distinct prime factors; BATCH, which is in every activation, has another.
SIZES = [8 * p for p in (5, 7, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107)]
BATCH = 8 * 11


def normalized(x, gain=None):
    wide = x.astype(jnp.float32)
    out = (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype)
    return out if gain is None else out * gain


def attention_shapes(width, key, value):
    """Twelve heads share four keys and values; no two of the weights have the same number of elements."""
    return {"wq": (width, 12, key), "wk": (width, 4, key), "wv": (width, 4, value), "wo": (12, value, width)}


def attention(x, p):
    """Causal attention with the weights above. x: [batch, length, width]"""
    q, k, v = (jnp.einsum("btd,dhk->bthk", x, p[name]) for name in ("wq", "wk", "wv"))
    k, v = jnp.repeat(k, 3, 2), jnp.repeat(v, 3, 2)
    scores = jnp.einsum("bthk,bshk->bhts", q, k, preferred_element_type=jnp.float32) / k.shape[-1] ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e30)
    mixed = jnp.einsum("bhts,bshv->bthv", jax.nn.softmax(scores, -1).astype(v.dtype), v)
    return jnp.einsum("bthv,hvd->btd", mixed, p["wo"])


def descend(params, gradients, rate=0.01):
    return jax.tree.map(lambda p, g: p - rate * g.astype(p.dtype), params, gradients)


def split_first(mesh, shapes, axis, dtype=jnp.float32, after=0):
    """Abstract weights of these shapes, split along the first dimension that the axis divides, from dimension `after` on."""
    size = mesh.shape[axis]

    def one(shape):
        spec = [None] * len(shape)
        spec[next(d for d in range(after, len(shape)) if shape[d] % size == 0)] = axis
        return abstract(mesh, shape, *spec, dtype=dtype)
    return jax.tree.map(one, shapes, is_leaf=lambda x: isinstance(x, tuple))


def lower_step(loss, params, *batch, update=descend, state=()):
    """A step that returns the new parameters first, then the new state if there is one, and the loss last.
    `update(params, gradients[, state])` returns the new parameters, or them and the new state."""
    def step(params, state, *inputs):
        value, gradients = jax.value_and_grad(loss)(params, *inputs)
        if not state:
            return update(params, gradients), state, value
        new, state = update(params, gradients, state)
        return new, state, value

    out = (shardings_of(params), shardings_of(state), None)
    return jax.jit(step, donate_argnums=(0, 1), out_shardings=out).lower(params, state, *batch)
