"""Two convolutions with split channels and batch, and their gradients."""

import jax
import jax.numpy as jnp

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"
ORDER = ("NHWC", "HWIO", "NHWC")


def lower(devices):
    mesh = make_mesh(devices, data=2, channel=4)

    def loss(kernels, images):
        x = jax.lax.conv_general_dilated(images, kernels[0], (1, 1), "SAME", dimension_numbers=ORDER)
        x = jax.lax.conv_general_dilated(jax.nn.relu(x), kernels[1], (2, 2), "SAME", dimension_numbers=ORDER)
        return jnp.mean(x ** 2)

    kernels = [abstract(mesh, (3, 3, 16, 128), None, None, None, "channel"),
               abstract(mesh, (3, 3, 128, 64), None, None, "channel")]
    return jax.jit(jax.grad(loss)).lower(kernels, abstract(mesh, (8, 32, 32, 16), "data"))
