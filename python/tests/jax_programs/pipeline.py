"""Stages on different devices: each microbatch moves to the next stage by a permutation."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

STAGES, MICROBATCHES = 4, 6


def lower(devices):
    mesh = make_mesh(devices, data=2, stage=STAGES)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=P(None, "data"))
    def pipeline(weights, batches):
        stage = jax.lax.axis_index("stage")
        forward = [(i, i + 1) for i in range(STAGES - 1)]

        def tick(state, t):
            fresh = batches[jnp.minimum(t, MICROBATCHES - 1)]
            x = jnp.tanh(jnp.where(stage == 0, fresh, state) @ weights[0])
            return jax.lax.ppermute(x, "stage", forward), x

        start = jax.lax.pcast(jnp.zeros_like(batches[0]), "stage", to="varying")
        _, results = jax.lax.scan(tick, start, jnp.arange(MICROBATCHES + STAGES - 1))
        last = jnp.where(stage == STAGES - 1, results[STAGES - 1:], 0.0)
        return jax.lax.psum(last, "stage")

    return jax.jit(pipeline).lower(abstract(mesh, (STAGES, 32, 32), "stage"),
                                   abstract(mesh, (MICROBATCHES, 16, 32), None, "data"))
