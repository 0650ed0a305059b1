"""Layers in a scan with a policy of recomputation; weights split over both axes."""

import functools

import jax
import jax.numpy as jnp

from .common import abstract, constrain, make_mesh, shardings_of

TOPOLOGY = "v5e:4x4"


def lower(devices):
    mesh = make_mesh(devices, fsdp=4, tensor=4)

    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
    def layer(x, p):
        x = constrain(mesh, x, "fsdp", None, None)
        hidden = jax.nn.gelu(x @ p["up"].astype(jnp.bfloat16))
        hidden = constrain(mesh, hidden, "fsdp", None, "tensor")
        return x + hidden @ p["down"].astype(jnp.bfloat16), None

    def loss(params, x):
        return jnp.mean(jax.lax.scan(layer, x, params)[0].astype(jnp.float32) ** 2)

    def step(params, x):
        value, gradients = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients), value

    params = {"up": abstract(mesh, (4, 256, 1024), None, "fsdp", "tensor"),
              "down": abstract(mesh, (4, 1024, 256), None, "tensor", "fsdp")}
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings_of(params), None)).lower(
        params, abstract(mesh, (16, 128, 256), "fsdp", dtype=jnp.bfloat16))
