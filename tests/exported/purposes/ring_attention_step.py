"""Attention over a sequence that is split: keys and values go around a ring. The projections are split over `fsdp`."""

import functools

from jax.sharding import PartitionSpec as P

from .common import BATCH, SIZES, abstract, jax, jnp, lower_step, make_mesh, normalized, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {"project": ("['q']", "['k']", "['v']"), "out": ("['o']",)}


def ring(q, k, v):
    """One device's part of [batch, length, width]."""
    total, weights = jnp.zeros(v.shape, jnp.float32), jnp.zeros(q.shape[:2] + (1,), jnp.float32)
    total, weights = (jax.lax.pcast(one, ("fsdp", "ring"), to="varying") for one in (total, weights))

    def turn(carry, _):
        k, v, total, weights = carry
        scores = jnp.exp(jnp.einsum("btd,bsd->bts", q, k) / q.shape[-1])
        total, weights = total + jnp.einsum("bts,bsv->btv", scores, v), weights + scores.sum(-1, keepdims=True)
        k, v = (jax.lax.ppermute(one, "ring", [(i, (i + 1) % 4) for i in range(4)]) for one in (k, v))
        return (k, v, total, weights), None

    (_, _, total, weights), _ = jax.lax.scan(turn, (k, v, total, weights), None, length=4)
    return total / weights


def lower(devices):
    mesh = make_mesh(devices, fsdp=2, ring=4)
    d, key, value = SIZES[:3]
    inside = functools.partial(jax.shard_map, mesh=mesh, in_specs=P("fsdp", "ring"), out_specs=P("fsdp", "ring"))(ring)

    def loss(params, x):
        with jax.named_scope("project"):
            h = normalized(x)
            q, k, v = (h @ params[name] for name in ("q", "k", "v"))
        x = inside(q, k, v)
        with jax.named_scope("out"):
            return jnp.mean((x @ params["o"]) ** 2)

    params = split_first(mesh, {"q": (d, key), "k": (d, key), "v": (d, value), "o": (value, SIZES[4])}, "fsdp")
    return lower_step(loss, params, abstract(mesh, (BATCH, 64, d), "fsdp", "ring"))
