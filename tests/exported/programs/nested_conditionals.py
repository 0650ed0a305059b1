"""Sums in branches, in a branch of a branch, and in a loop around branches."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, a=2, b=4)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("a", "b"), P()), out_specs=P("a", "b"), check_vma=False)
    def run(x, flags):
        def inner(y):
            return jax.lax.cond(flags[1] > 0, lambda z: jax.lax.psum(z, "a"), lambda z: jax.lax.pmax(z, "b"), y)

        def outer(y):
            return jax.lax.cond(flags[0] > 0, inner, lambda z: jax.lax.all_gather(z, "b")[0], y)

        x = outer(x)

        def body(i, y):
            turned = jax.lax.ppermute(y, "b", [(k, (k + 1) % 4) for k in range(4)])
            return jax.lax.switch(flags[2] + i, [lambda z: z * 2, lambda z: jax.lax.psum(z, ("a", "b")), jnp.sin], turned)

        return jax.lax.fori_loop(0, 3, body, x)

    return jax.jit(run).lower(abstract(mesh, (32, 512), "a", "b"), abstract(mesh, (3,), dtype=jnp.int32))
