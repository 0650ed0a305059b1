"""A sum over two slices by hand: scattered inside a slice, summed between the slices, gathered inside."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh_over_slices

TOPOLOGY, SLICES = "v5e:2x4", 2


def lower(devices):
    mesh = make_mesh_over_slices(devices, SLICES, chip=8)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P(("dcn", "chip")), out_specs=P(), check_vma=False)
    def total(x):
        part = jax.lax.psum_scatter(jnp.sum(x, 0), "chip", tiled=True)
        return jax.lax.all_gather(jax.lax.psum(part, "dcn"), "chip", tiled=True)

    return jax.jit(total).lower(abstract(mesh, (32, 4096), ("dcn", "chip")))
