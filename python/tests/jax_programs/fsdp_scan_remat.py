"""Layers in a scan with recomputation; parameters are split, and gathered before each layer."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh


def lower(devices):
    mesh = make_mesh(devices, fsdp=8)
    split = NamedSharding(mesh, P(None, "fsdp"))
    batch = NamedSharding(mesh, P("fsdp"))

    @jax.checkpoint
    def layer(x, p):
        x = jax.lax.with_sharding_constraint(x, batch)
        hidden = jax.nn.relu(x @ p["up"])
        return jax.lax.with_sharding_constraint(x + hidden @ p["down"], batch), None

    def loss(params, x):
        return jnp.sum(jax.lax.scan(layer, x, params)[0] ** 2)

    def step(params, x):
        gradients = jax.grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.01 * jax.lax.with_sharding_constraint(g, split), params, gradients)

    params = {"up": abstract(mesh, (6, 64, 128), None, "fsdp"), "down": abstract(mesh, (6, 128, 64), None, "fsdp")}
    return jax.jit(step, donate_argnums=0).lower(params, abstract(mesh, (64, 64), "fsdp"))
