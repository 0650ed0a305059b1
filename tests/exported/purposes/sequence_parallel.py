"""Tensor parallel blocks whose positions are split between them: gathers and scatters of activations, no weights moved."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, normalized

TOPOLOGY = "v5e:4x4"
LAYERS = {f"block{i}": (f"['{n}{i}']",) for i in range(2) for n in ("u",)}
LAYERS = {f"block{i}": (f"['up{i}']", f"['down{i}']", f"['gain{i}']") for i in range(2)}
SIZES_TELL = False


def lower(devices):
    mesh = make_mesh(devices, data=4, model=4)
    d = SIZES[0]

    def loss(params, x):
        for i in range(2):
            with jax.named_scope(f"block{i}"):
                y = constrain(mesh, normalized(x, params[f"gain{i}"]), "data", None)
                y = constrain(mesh, jax.nn.relu(y @ params[f"up{i}"]), "data", None, "model")
                x = constrain(mesh, x + y @ params[f"down{i}"], "data", "model")
        return jnp.mean(x ** 2)

    params = {}
    for i in range(2):
        f = SIZES[i + 1]
        params |= {f"gain{i}": abstract(mesh, (d,)), f"up{i}": abstract(mesh, (d, f), None, "model"),
                   f"down{i}": abstract(mesh, (f, d), "model")}
    return lower_step(loss, params, abstract(mesh, (BATCH, 16, d), "data", "model"))
