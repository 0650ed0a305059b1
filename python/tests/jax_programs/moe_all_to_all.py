"""Experts on different devices: tokens travel by all-to-all, and back."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh


def lower(devices):
    mesh = make_mesh(devices, expert=8)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("expert"), P("expert"), P()), out_specs=P("expert"))
    def experts(tokens, weights, router):
        count, width = tokens.shape
        slots = count // 8
        gate = jax.nn.softmax(tokens @ router)
        order = jnp.argsort(jnp.argmax(gate, -1))
        grouped = tokens[order].reshape(8, slots, width)
        arrived = jax.lax.all_to_all(grouped, "expert", 0, 0)
        done = jnp.einsum("esd,df->esf", arrived, weights[0])
        returned = jax.lax.all_to_all(done, "expert", 0, 0)
        return returned.reshape(count, width)[jnp.argsort(order)]

    return jax.jit(experts).lower(abstract(mesh, (512, 32), "expert"), abstract(mesh, (8, 32, 32), "expert"),
                                  abstract(mesh, (32, 8)))
