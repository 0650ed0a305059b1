"""Patches of images, learned positions, two layers of attention with tensor and data parallelism, and a head."""

from .common import (BATCH, SIZES, abstract, attention, attention_shapes, constrain, jax, jnp, lower_step, make_mesh, normalized)

TOPOLOGY = "v5e:4x4"
LAYERS = {"patches": ("['patches']", "['positions']"), "head": ("['head']",)} | {f"l{i}": (f"['l{i}']",) for i in range(2)}


def lower(devices):
    mesh = make_mesh(devices, data=4, model=4)
    d = SIZES[0]

    def loss(params, images):
        with jax.named_scope("patches"):
            x = jax.lax.conv_general_dilated(images, params["patches"], (4, 4), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = constrain(mesh, x.reshape(BATCH, 16, d) + params["positions"], "data")
        for i in range(2):
            with jax.named_scope(f"l{i}"):
                p = params[f"l{i}"]
                x = x + attention(normalized(x), p)
                x = constrain(mesh, x + jax.nn.gelu(normalized(x) @ p["up"]) @ jnp.tanh(p["down"]), "data")
        with jax.named_scope("head"):
            return jnp.mean(jax.nn.logsumexp(x.mean(1) @ params["head"], -1))

    specs = {"wq": ("data", "model"), "wk": ("data", "model"), "wv": ("data", "model"), "wo": ("model", None, "data"),
             "up": ("data", "model"), "down": ("model", "data")}

    def layer(k, v, f):
        shapes = {**attention_shapes(d, k, v), "up": (d, f), "down": (f, d)}
        return {name: abstract(mesh, shape, *specs[name]) for name, shape in shapes.items()}

    params = {"patches": abstract(mesh, (4, 4, 4, d), None, None, None, "data"), "positions": abstract(mesh, (16, d)),
              "l0": layer(*SIZES[1:4]), "l1": layer(*SIZES[4:7]), "head": abstract(mesh, (d, SIZES[8]), "data", "model")}
    return lower_step(loss, params, abstract(mesh, (BATCH, 16, 16, 4), "data"))
