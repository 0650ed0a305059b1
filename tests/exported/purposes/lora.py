"""Small trained matrices beside large ones that stay as they are. The large ones are split and gathered."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {f"layer{i}": (f"['l{i}']",) for i in range(3)}


def lower(devices):
    mesh = make_mesh(devices, data=8)
    ranks = SIZES[4:7]

    def loss(params, base, x):
        for i in range(3):
            with jax.named_scope(f"layer{i}"):
                p, frozen = params[f"l{i}"], base[f"l{i}"]
                x = constrain(mesh, jax.nn.relu(x @ frozen["w"] + (x @ p["a"]) @ p["b"]), "data")
        return jnp.mean(x ** 2)

    params = {f"l{i}": {"a": abstract(mesh, (SIZES[i], ranks[i])), "b": abstract(mesh, (ranks[i], SIZES[i + 1]))} for i in range(3)}
    base = split_first(mesh, {f"l{i}": {"w": (SIZES[i], SIZES[i + 1])} for i in range(3)}, "data")
    return lower_step(loss, params, base, abstract(mesh, (BATCH, SIZES[0]), "data"))
