"""A quantized layer: int8 products with int32 sums, and scales by channel."""

import jax
import jax.numpy as jnp

from .common import abstract, constrain, make_mesh

TOPOLOGY = "v5e:2x4"


def product(a, b):
    return jax.lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)


def quantized(x):
    scale = jnp.max(jnp.abs(x), -1, keepdims=True) / 127
    return jnp.round(x / scale).astype(jnp.int8), scale


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)

    def layer(x, up, up_scale, down, down_scale):
        q, scale = quantized(x.astype(jnp.float32))
        hidden = jax.nn.relu(product(q, up) * scale * up_scale)
        q, scale = quantized(constrain(mesh, hidden, "data", "model"))
        return (product(q, down) * scale * down_scale).astype(jnp.bfloat16)

    return jax.jit(layer).lower(
        abstract(mesh, (64, 256), "data", dtype=jnp.bfloat16), abstract(mesh, (256, 1024), None, "model", dtype=jnp.int8),
        abstract(mesh, (1024,), "model"), abstract(mesh, (1024, 256), "model", dtype=jnp.int8), abstract(mesh, (256,)))
