"""A sum in a loop whose operand does not depend on the loop, and one whose operand does."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, a=2, b=4)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("a", "b"), out_specs=(P("a", "b"), P()))
    def run(x):
        def body(i, state):
            y, total = state
            return jnp.sin(y) + jax.lax.pmean(y, "b"), total + jax.lax.psum(jnp.max(x), ("a", "b"))

        return jax.lax.fori_loop(0, 3, body, (x, jnp.float32(0)))

    return jax.jit(run).lower(abstract(mesh, (64, 512), "a", "b"))
