"""A small U-net: convolutions down, dense layers up, and connections that skip the middle."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh

TOPOLOGY = "v5e:2x4"


def convolve(x, kernel, stride):
    return jax.nn.relu(jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))


def lower(devices):
    mesh = make_mesh(devices, data=8)
    a, b, c = SIZES[:3]

    def loss(params, x):
        skips = []
        for p in params["down"]:
            x = constrain(mesh, convolve(x, p["kernel"], 2), "data")
            skips.append(x)
        for p, skip in zip(params["up"], reversed(skips)):
            x = constrain(mesh, convolve(x + skip, p["kernel"], 1), "data")
            x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
        return jnp.mean(x ** 2)

    def kernel(rows, inputs, outputs):
        return {"kernel": abstract(mesh, (rows, 2, inputs, outputs), None, None, None, "data")}

    params = {"down": [kernel(2, 16, a), kernel(2, a, b), kernel(2, b, c)], "up": [kernel(6, c, b), kernel(6, b, a), kernel(6, a, 16)]}
    return lower_step(loss, params, abstract(mesh, (BATCH, 32, 32, 16), "data"))
