"""Weights in f32 that are cast to bf16 before they are gathered, with a scale for the loss."""

from .common import BATCH, SIZES, abstract, constrain, descend, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:4x4"
LAYERS = {f"block{i}": (f"['up{i}']", f"['down{i}']", f"['bias{i}']") for i in range(3)}


def lower(devices):
    mesh = make_mesh(devices, data=16)
    sizes = [2 * size for size in SIZES[:7]]

    def loss(params, x):
        x = x.astype(jnp.bfloat16)
        for i in range(3):
            with jax.named_scope(f"block{i}"):
                up, down, bias = (params[f"{name}{i}"].astype(jnp.bfloat16) for name in ("up", "down", "bias"))
                x = constrain(mesh, jax.nn.gelu(jax.nn.gelu(x @ up + bias) @ down), "data")
        return 1024 * jnp.mean(x.astype(jnp.float32) ** 2)

    def update(params, gradients):
        return descend(params, jax.tree.map(lambda g: g / 1024, gradients))

    shapes = {}
    for i in range(3):
        a, b, c = sizes[2 * i:2 * i + 3]
        shapes |= {f"up{i}": (a, b), f"down{i}": (b, c), f"bias{i}": (b,)}
    params = split_first(mesh, shapes, "data")
    return lower_step(loss, params, abstract(mesh, (2 * BATCH, sizes[0]), "data"), update=update)
