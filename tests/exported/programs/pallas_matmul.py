"""A Pallas kernel, whose cost its author states, on each device's part; then a sum over the devices."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"
M, K, N, BLOCK = 256, 512, 256, 128


def kernel(a, b, out):
    out[...] = jnp.dot(a[...], b[...], preferred_element_type=jnp.float32)


def product(a, b):
    cost = pl.CostEstimate(flops=2 * M * K * N, bytes_accessed=2 * (M * K + K * N) + 4 * M * N, transcendentals=0)
    return pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32), grid=(M // BLOCK, N // BLOCK),
        in_specs=[pl.BlockSpec((BLOCK, K), lambda i, j: (i, 0)), pl.BlockSpec((K, BLOCK), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((BLOCK, BLOCK), lambda i, j: (i, j)), cost_estimate=cost)(a, b)


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("data", "model"), P("model")), out_specs=P("data"),
                       check_vma=False)
    def layer(a, b):
        return jax.lax.psum(product(a, b), "model")

    return jax.jit(layer).lower(abstract(mesh, (2 * M, 4 * K), "data", "model", dtype=jnp.bfloat16),
                                abstract(mesh, (4 * K, N), "model", dtype=jnp.bfloat16))
