"""Weights that are rounded to 8 bits in the forward pass, with gradients straight through, and a scale for each column."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {f"dense{i}": (f"['w{i}']", f"['scale{i}']") for i in range(3)}


def lower(devices):
    mesh = make_mesh(devices, fsdp=8)

    def rounded(w):
        return w + jax.lax.stop_gradient(jnp.clip(jnp.round(w * 127.0), -127, 127) / 127.0 - w)

    def loss(params, x):
        for i in range(3):
            with jax.named_scope(f"dense{i}"):
                x = constrain(mesh, jnp.tanh(x @ rounded(params[f"w{i}"]) * params[f"scale{i}"]), "fsdp")
        return jnp.mean(x ** 2)

    params = split_first(mesh, {f"w{i}": (SIZES[i], SIZES[i + 1]) for i in range(3)}, "fsdp")
    params |= {f"scale{i}": abstract(mesh, (SIZES[i + 1],), "fsdp") for i in range(3)}
    return lower_step(loss, params, abstract(mesh, (BATCH, SIZES[0]), "fsdp"))
