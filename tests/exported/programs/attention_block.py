"""One block of a decoder for the two models: grouped queries, rotations, a causal mask."""

import math

import jax
import jax.numpy as jnp


def rms(x, gain):
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6) * gain).astype(x.dtype)


def rotated(x):
    """x: [batch, length, heads, width]"""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    sin, cos = jnp.sin(angles)[:, None].astype(x.dtype), jnp.cos(angles)[:, None].astype(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attention(x, p, cap=None):
    """x: [batch, length, width]; p: wq [width, heads, head], wk and wv with fewer heads, wo [heads, head, width]."""
    q, k = rotated(jnp.einsum("btd,dhk->bthk", x, p["wq"])), rotated(jnp.einsum("btd,dhk->bthk", x, p["wk"]))
    v = jnp.einsum("btd,dhk->bthk", x, p["wv"])
    b, t, heads, width = q.shape
    q = q.reshape(b, t, k.shape[2], heads // k.shape[2], width)
    scores = jnp.einsum("btkgd,bskd->bkgts", q, k, preferred_element_type=jnp.float32) / math.sqrt(width)
    if cap:
        scores = cap * jnp.tanh(scores / cap)
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e30)
    mixed = jnp.einsum("bkgts,bskd->btkgd", jax.nn.softmax(scores, -1).astype(x.dtype), v)
    return jnp.einsum("bthk,hkd->btd", mixed.reshape(b, t, heads, width), p["wo"])


def cross_entropy(logits, targets):
    logits = logits.astype(jnp.float32)
    chosen = jax.lax.broadcasted_iota(jnp.int32, logits.shape, 2) == targets[..., None]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.sum(jnp.where(chosen, logits, 0), -1))
