"""Tokens go to their experts and back by explicit all-to-alls, with the gradient."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

TOPOLOGY = "v5e:4x4"


def lower(devices):
    mesh = make_mesh(devices, data=4, expert=4)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P(("data", "expert")), P("expert")),
                       out_specs=P(("data", "expert")))
    def experts(slots, weights):
        # slots: [experts, capacity, width] of this device's tokens, stacked by device
        sent = jax.lax.all_to_all(slots[0], "expert", 0, 0, tiled=True)
        hidden = jax.nn.gelu(jnp.einsum("ecd,edf->ecf", sent.reshape(2, -1, 64), weights))
        back = jnp.einsum("ecf,edf->ecd", hidden, weights).reshape(sent.shape)
        return jax.lax.all_to_all(back, "expert", 0, 0, tiled=True)[None]

    def loss(weights, slots):
        return jnp.mean(experts(slots, weights) ** 2)

    return jax.jit(jax.value_and_grad(loss)).lower(
        abstract(mesh, (8, 64, 256), "expert"), abstract(mesh, (16, 8, 32, 64), ("data", "expert")))
