"""A transformer layer: heads and hidden units are split, and the batch too."""

import jax
import jax.numpy as jnp

from .common import abstract, make_mesh


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def attention(p, x):
    q, k, v = (jnp.einsum("bsd,dhk->bhsk", x, p[name]) for name in ("wq", "wk", "wv"))
    scores = jax.nn.softmax(jnp.einsum("bhqk,bhsk->bhqs", q, k) / 4, axis=-1)
    return jnp.einsum("bhsk,hkd->bsd", jnp.einsum("bhqs,bhsk->bhqk", scores, v), p["wo"])


def layer(p, x):
    x = x + attention(p, norm(x))
    hidden = jax.nn.gelu(norm(x) @ p["up"])
    return x + hidden @ p["down"]


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)
    d, heads, width, hidden = 64, 8, 16, 256
    p = {name: abstract(mesh, (d, heads, width), None, "model") for name in ("wq", "wk", "wv")}
    p["wo"] = abstract(mesh, (heads, width, d), "model")
    p["up"], p["down"] = abstract(mesh, (d, hidden), None, "model"), abstract(mesh, (hidden, d), "model")
    return jax.jit(layer).lower(p, abstract(mesh, (4, 32, d), "data"))
