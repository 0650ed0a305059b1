"""Experts that are split over `expert`, with routing by products with masks, and dense layers before and after."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh

TOPOLOGY = "v5e:2x4"
LAYERS = {"before": ("['before']",), "router": ("['router']",), "experts": ("['up']", "['down']"), "after": ("['after']",)}


def lower(devices):
    mesh = make_mesh(devices, data=2, expert=4)
    a, d, f, out = SIZES[:4]

    def loss(params, x):
        with jax.named_scope("before"):
            x = constrain(mesh, jax.nn.relu(x @ params["before"]), "data")
        with jax.named_scope("router"):
            gates = jax.nn.softmax(x @ params["router"], -1)
            mask = jax.nn.one_hot(jnp.argmax(gates, -1), 8, dtype=x.dtype) * gates
        with jax.named_scope("experts"):
            taken = constrain(mesh, jnp.einsum("bte,btd->ebtd", mask, x), "expert", "data")
            hidden = jax.nn.relu(jnp.einsum("ebtd,edf->ebtf", taken, params["up"]))
            done = constrain(mesh, jnp.einsum("ebtf,efd->ebtd", hidden, jnp.tanh(params["down"])), "expert", "data")
            x = constrain(mesh, x + jnp.einsum("ebtd->btd", done), "data")
        with jax.named_scope("after"):
            return jnp.mean((x @ params["after"]) ** 2)

    params = {"before": abstract(mesh, (a, d), "data", "expert"), "router": abstract(mesh, (d, 8)),
              "up": abstract(mesh, (8, d, f), "expert", "data"), "down": abstract(mesh, (8, f, d), "expert", "data"),
              "after": abstract(mesh, (d, out), "expert", "data")}
    return lower_step(loss, params, abstract(mesh, (BATCH, 16, a), "data"))
