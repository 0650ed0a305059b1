"""A convolutional net of a diffusion model: group norms, an embedding of the time, a skip; kernels split over channels."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh

TOPOLOGY = "v5e:2x4"
LAYERS = {"time": ("['time']",), "down": ("['down']", "['shift0']"), "middle": ("['middle']", "['shift1']"), "up": ("['up']",)}


def lower(devices):
    mesh = make_mesh(devices, fsdp=8)
    t, c0, c1 = SIZES[0], SIZES[1], SIZES[2]

    def conv(x, w, stride=1):
        return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def grouped(x):
        g = x.reshape(*x.shape[:3], 8, -1)
        g = (g - g.mean((1, 2, 4), keepdims=True)) * jax.lax.rsqrt(g.var((1, 2, 4), keepdims=True) + 1e-5)
        return g.reshape(x.shape)

    def loss(params, image, when):
        with jax.named_scope("time"):
            code = jnp.sin(when[:, None] * jnp.arange(16.0))
            code = jax.nn.silu(code @ params["time"])
        with jax.named_scope("down"):
            x = conv(image, params["down"], 2) + (code @ params["shift0"])[:, None, None]
            kept = x = constrain(mesh, jax.nn.silu(grouped(x)), "fsdp")
        with jax.named_scope("middle"):
            x = conv(x, params["middle"]) + (code @ params["shift1"])[:, None, None]
            x = constrain(mesh, jax.nn.silu(grouped(x)), "fsdp")
        with jax.named_scope("up"):
            x = jnp.concatenate([x, kept], -1)
            out = conv(jax.image.resize(x, (BATCH, 16, 16, c0 + c1), "nearest"), params["up"])
        return jnp.mean((out - image) ** 2)

    params = {"time": abstract(mesh, (16, t), None, "fsdp"), "down": abstract(mesh, (3, 3, 4, c0), None, None, None, "fsdp"),
              "shift0": abstract(mesh, (t, c0), "fsdp"), "shift1": abstract(mesh, (t, c1), "fsdp"),
              "middle": abstract(mesh, (3, 3, c0, c1), None, None, "fsdp"), "up": abstract(mesh, (5, 5, c0 + c1, 4), None, None, "fsdp")}
    return lower_step(loss, params, abstract(mesh, (BATCH, 16, 16, 4), "fsdp"), abstract(mesh, (BATCH,), "fsdp"))
