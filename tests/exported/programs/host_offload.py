"""The optimizer's state is in the host's memory, comes to the device for the step, and goes back."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, data=8)
    near = NamedSharding(mesh, P("data"))
    far = NamedSharding(mesh, P("data"), memory_kind="pinned_host")

    def step(w, momentum, x):
        gradient = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
        momentum = 0.9 * jax.device_put(momentum, near) + gradient
        return w - 0.1 * momentum, jax.device_put(momentum, far)

    return jax.jit(step, out_shardings=(near, far), donate_argnums=(0, 1)).lower(
        abstract(mesh, (1024, 512), "data"), abstract(mesh, (1024, 512), "data", memory_kind="pinned_host"),
        abstract(mesh, (64, 1024), "data"))
