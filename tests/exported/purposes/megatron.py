"""Tensor and data parallel layers with plain Adam: weights are split over `model`, and their gradients summed over `data`."""

from .common import (BATCH, SIZES, abstract, attention, attention_shapes, constrain, jax, jnp, lower_step, make_mesh, normalized,
                     shardings_of)

TOPOLOGY = "v5e:2x4"
LAYERS = {f"b{i}/{part}": tuple(f"['b{i}']['{name}']" for name in names) for i in range(2)
          for part, names in (("attn", ("wq", "wk", "wv", "wo", "gain1")), ("mlp", ("up", "mid", "down", "gain2")))}


def adam(params, gradients, state):
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradients)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], gradients)
    new = jax.tree.map(lambda p, m, s: p - 1e-3 * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return new, {"mean": mean, "square": square}


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)
    d = SIZES[0]

    def loss(params, x):
        for i in range(2):
            p = params[f"b{i}"]
            with jax.named_scope(f"b{i}"):
                with jax.named_scope("attn"):
                    x = x + attention(normalized(x, p["gain1"]), p)
                with jax.named_scope("mlp"):
                    x = x + jax.nn.gelu(jax.nn.gelu(normalized(x, p["gain2"]) @ p["up"]) @ p["mid"]) @ p["down"]
                x = constrain(mesh, x, "data")
        return jnp.mean(x ** 2)

    specs = {"wq": (None, "model"), "wk": (None, "model"), "wv": (None, "model"), "wo": ("model",), "up": (None, "model"),
             "mid": ("model",), "down": (None,), "gain1": (), "gain2": ()}

    def block(k, v, f, g):
        shapes = {**attention_shapes(d, k, v), "up": (d, f), "mid": (f, g), "down": (g, d), "gain1": (d,), "gain2": (d,)}
        return {name: abstract(mesh, shape, *specs[name]) for name, shape in shapes.items()}

    params = {"b0": block(*SIZES[1:5]), "b1": block(*SIZES[5:9])}
    state = {"mean": params, "square": params}
    assert shardings_of(state)
    return lower_step(loss, params, abstract(mesh, (BATCH, 16, d), "data"), update=adam, state=state)
