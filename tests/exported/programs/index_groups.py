"""Collectives over groups that are written as lists of positions, which are parts of an axis."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"
PAIRS = [[0, 1], [2, 3], [4, 5], [6, 7]]
STRIDED = [[0, 2, 4, 6], [1, 3, 5, 7]]


def lower(devices):
    mesh = make_mesh(devices, x=8)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    def run(a):
        a = jax.lax.psum(a, "x", axis_index_groups=PAIRS)
        a = jax.lax.all_gather(jnp.sin(a), "x", axis_index_groups=STRIDED, tiled=True)
        a = jax.lax.psum_scatter(jnp.cos(a), "x", axis_index_groups=STRIDED, tiled=True)
        return jax.lax.all_to_all(jnp.tanh(a), "x", 0, 0, axis_index_groups=PAIRS, tiled=True)

    return jax.jit(run).lower(abstract(mesh, (256, 256), "x"))
