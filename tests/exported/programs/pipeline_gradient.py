"""A pipeline of four stages in a manual loop, with the gradient of its weights, and data parallelism around it."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"
STAGES, MICROBATCHES = 4, 6


def lower(devices):
    mesh = make_mesh(devices, data=2, stage=STAGES)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=P(None, "data"))
    def run(weights, batches):
        stage = jax.lax.axis_index("stage")
        along = [(i, i + 1) for i in range(STAGES - 1)]

        def tick(state, t):
            carried, out = state
            first = batches[jnp.minimum(t, MICROBATCHES - 1)]
            x = jnp.where(stage == 0, first, carried)
            y = jnp.tanh(x @ weights[0])
            at = jnp.maximum(t - (STAGES - 1), 0)
            out = out.at[at].set(jnp.where((stage == STAGES - 1) & (t >= STAGES - 1), y, out[at]))
            return (jax.lax.ppermute(y, "stage", along), out), None

        start = jax.lax.pcast((jnp.zeros_like(batches[0]), jnp.zeros_like(batches)), "stage", to="varying")
        (_, out), _ = jax.lax.scan(tick, start, jnp.arange(MICROBATCHES + STAGES - 1))
        return jax.lax.psum(jnp.where(stage == STAGES - 1, out, 0), "stage")

    def step(weights, batches, targets):
        value, gradient = jax.value_and_grad(lambda w: jnp.mean((run(w, batches) - targets) ** 2))(weights)
        return weights - 0.1 * gradient, value

    data = abstract(mesh, (MICROBATCHES, 16, 128), None, "data")
    return jax.jit(step, donate_argnums=0).lower(abstract(mesh, (STAGES, 128, 128), "stage"), data, data)
