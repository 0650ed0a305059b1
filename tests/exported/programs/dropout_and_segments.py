"""Random numbers of a split shape, sums by segment, and a prefix sum along a split dimension."""

import jax
import jax.numpy as jnp

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, nodes=8)

    def layer(key, x, senders, receivers):
        kept = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, x.shape)
        x = jnp.where(kept, x / 0.9, 0)
        sums = jax.ops.segment_sum(x[senders], receivers, num_segments=x.shape[0])
        return sums, jnp.cumsum(x[:, 0])

    edges = abstract(mesh, (1024,), "nodes", dtype=jnp.int32)
    return jax.jit(layer).lower(abstract(mesh, (2,), dtype=jnp.uint32), abstract(mesh, (256, 64), "nodes"), edges, edges)
