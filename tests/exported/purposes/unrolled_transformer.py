"""Three layers in a Python loop, each with sizes of its own; every weight is split over all devices."""

from .common import (BATCH, SIZES, abstract, attention, attention_shapes, constrain, jax, jnp, lower_step, make_mesh, normalized,
                     split_first)

TOPOLOGY = "v5e:2x4"
LAYERS = {f"layer{i}/{part}": tuple(f"['layers'][{i}]['{name}']" for name in names) for i in range(3)
          for part, names in (("attn", ("wq", "wk", "wv", "wo")), ("mlp", ("up", "mid", "down")))}


def lower(devices):
    mesh = make_mesh(devices, data=8)
    d, sizes = SIZES[0], [SIZES[1 + 4 * i:5 + 4 * i] for i in range(3)]

    def loss(params, x):
        for i, p in enumerate(params["layers"]):
            with jax.named_scope(f"layer{i}"):
                with jax.named_scope("attn"):
                    x = x + attention(normalized(x), p)
                with jax.named_scope("mlp"):
                    x = x + jax.nn.relu(jax.nn.relu(normalized(x) @ p["up"]) @ p["mid"]) @ p["down"]
                x = constrain(mesh, x, "data")
        return jnp.mean(x ** 2)

    params = {"layers": [split_first(mesh, {**attention_shapes(d, k, v), "up": (d, f), "mid": (f, g), "down": (g, d)}, "data")
                         for k, v, f, g in sizes]}
    return lower_step(loss, params, abstract(mesh, (BATCH, 16, d), "data"))
