"""A table split by rows: lookups, and the gradient of the table."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh


def lower(devices):
    mesh = make_mesh(devices, data=2, vocab=4)

    def loss(table, tokens):
        x = jnp.take(table, tokens, axis=0)
        logits = jnp.einsum("bsd,vd->bsv", x, table)
        return jnp.mean(jax.nn.logsumexp(logits, -1))

    def step(table, tokens):
        value, gradient = jax.value_and_grad(loss)(table, tokens)
        return table - 0.1 * gradient, value

    split = NamedSharding(mesh, P("vocab"))
    return jax.jit(step, out_shardings=(split, None), donate_argnums=0).lower(
        abstract(mesh, (512, 32), "vocab"), abstract(mesh, (8, 16), "data", dtype=jnp.int32))
