"""Sums over parts of a mesh with three axes, and explicit collectives of several axes."""

import functools

import jax
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh


def lower(devices):
    mesh = make_mesh(devices, a=2, b=2, c=2)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("a", ("b", "c")),
                       out_specs=(P(), P("a", "b"), P(None, "a")), check_vma=False)
    def exchange(x):
        everywhere = jax.lax.psum(x.sum(), ("a", "b", "c"))
        rows = jax.lax.all_gather(x, ("b", "c"), axis=1, tiled=True)
        scattered = jax.lax.psum_scatter(rows, "c", scatter_dimension=0, tiled=True)
        gathered = jax.lax.all_gather(scattered[:, :16], "c", axis=0, tiled=True)
        moved = jax.lax.all_to_all(x, "a", 1, 0, tiled=True)
        return everywhere, gathered, moved

    return jax.jit(exchange).lower(abstract(mesh, (32, 64), "a", ("b", "c")))
