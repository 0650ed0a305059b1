"""Convolutions over images, with biases and a dense layer; the batch is split, and so are the kernels."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh

TOPOLOGY = "v5e:2x4"
LAYERS = {f"conv{i}": (f"['conv{i}']",) for i in range(3)} | {"classes": ("['classes']",)}


def lower(devices):
    mesh = make_mesh(devices, data=8)
    channels = [16, *SIZES[:3]]

    def loss(params, x):
        for i in range(3):
            with jax.named_scope(f"conv{i}"):
                p = params[f"conv{i}"]
                x = jax.lax.conv_general_dilated(x, p["kernel"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                x = constrain(mesh, jax.nn.relu(x + p["bias"]), "data")
        with jax.named_scope("classes"):
            return jnp.mean(jax.nn.logsumexp(jnp.mean(x, (1, 2)) @ params["classes"]["w"], -1))

    params = {f"conv{i}": {"kernel": abstract(mesh, (4, 4, channels[i], channels[i + 1]), None, None, None, "data"),
                           "bias": abstract(mesh, (channels[i + 1],))} for i in range(3)}
    params["classes"] = {"w": abstract(mesh, (channels[3], SIZES[4]), "data")}
    return lower_step(loss, params, abstract(mesh, (BATCH, 16, 16, 16), "data"))
