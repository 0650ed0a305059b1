"""Dispatch to experts as products with one-hot masks, as in GShard."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

EXPERTS, CAPACITY = 8, 16


def lower(devices):
    mesh = make_mesh(devices, data=2, expert=4)

    def layer(router, up, down, x):
        gate = jax.nn.softmax(jnp.einsum("gsd,de->gse", x, router))
        chosen = jax.nn.one_hot(jnp.argmax(gate, -1), EXPERTS)
        place = jnp.cumsum(chosen, 1) * chosen - 1
        dispatch = chosen[..., None] * jax.nn.one_hot(place.astype(jnp.int32), CAPACITY)
        sent = jnp.einsum("gsec,gsd->egcd", dispatch, x)
        sent = jax.lax.with_sharding_constraint(sent, NamedSharding(mesh, P("expert", "data")))
        hidden = jax.nn.relu(jnp.einsum("egcd,edf->egcf", sent, up))
        done = jnp.einsum("egcf,efd->egcd", hidden, down)
        combine = dispatch * gate.max(-1)[..., None, None]
        back = jnp.einsum("gsec,egcd->gsd", combine, done)
        return jax.lax.with_sharding_constraint(back, NamedSharding(mesh, P(("data", "expert"))))

    return jax.jit(layer).lower(abstract(mesh, (32, EXPERTS)), abstract(mesh, (EXPERTS, 32, 64), "expert"),
                                abstract(mesh, (EXPERTS, 64, 32), "expert"),
                                abstract(mesh, (8, 64, 32), ("data", "expert")))
