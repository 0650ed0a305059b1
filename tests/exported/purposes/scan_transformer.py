"""Four equal layers in a scan with recomputation; every weight is split over all devices and gathered for its layer."""

from .common import (BATCH, SIZES, abstract, attention, attention_shapes, constrain, jax, jnp, lower_step, make_mesh, normalized,
                     split_first)

TOPOLOGY = "v5e:2x4"
LAYERS = {"attn": ("wq", "wk", "wv", "wo"), "mlp": ("up", "mid", "down"), "head": ("head",)}


def lower(devices):
    mesh = make_mesh(devices, fsdp=8)
    d, k, v, f, g, out = SIZES[:6]

    @jax.checkpoint
    def layer(x, p):
        with jax.named_scope("attn"):
            x = x + attention(normalized(x), p)
        with jax.named_scope("mlp"):
            x = x + jax.nn.relu(jax.nn.relu(normalized(x) @ p["up"]) @ p["mid"]) @ p["down"]
        return constrain(mesh, x, "fsdp"), None

    def loss(params, x):
        x, _ = jax.lax.scan(layer, x, params["layers"])
        with jax.named_scope("head"):
            return jnp.mean((x @ params["head"]) ** 2)

    shapes = {**attention_shapes(d, k, v), "up": (d, f), "mid": (f, g), "down": (g, d)}
    layers = split_first(mesh, {name: (4, *shape) for name, shape in shapes.items()}, "fsdp", after=1)
    params = {"layers": layers, "head": abstract(mesh, (d, out), "fsdp")}
    return lower_step(loss, params, abstract(mesh, (BATCH, 16, d), "fsdp"))
