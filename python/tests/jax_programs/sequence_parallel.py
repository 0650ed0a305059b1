"""An MLP with a split sequence between the products: all-gather before, reduce-scatter after."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)

    def constrain(x, *spec):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))

    def block(up, down, x):
        normed = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True))
        whole = constrain(normed, "data", None, None)
        hidden = jax.nn.silu(whole @ up)
        return x + constrain(hidden @ down, "data", "model", None)

    return jax.jit(block).lower(abstract(mesh, (64, 256), None, "model"), abstract(mesh, (256, 64), "model"),
                                abstract(mesh, (4, 64, 64), "data", "model"))
