"""A running average of the weights, which have the same shapes and names, is updated with them."""

from .common import BATCH, SIZES, abstract, constrain, descend, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)

    def loss(params, x):
        for p in params["net"]:
            x = constrain(mesh, jax.nn.relu(x @ p["w"] + p["b"]), "data")
        return jnp.mean(x ** 2)

    def update(params, gradients, average):
        new = descend(params, gradients)
        return new, jax.tree.map(lambda a, p: 0.99 * a + 0.01 * p, average, new)

    params = {"net": [split_first(mesh, {"w": (SIZES[i], SIZES[i + 1]), "b": (SIZES[i + 1],)}, "model") for i in range(3)]}
    return lower_step(loss, params, abstract(mesh, (BATCH, SIZES[0]), "data"), update=update, state=params)
