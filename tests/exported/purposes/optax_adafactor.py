"""Optax's adafactor, whose states are rows and columns, with weights that are split over `data` and `model`."""

import optax

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)
    optimizer = optax.adafactor(1e-3, min_dim_size_to_factor=32)

    def loss(params, x):
        for p in params["tower"]:
            x = constrain(mesh, jax.nn.relu(x @ p["kernel"]), "data")
        return jnp.mean(x ** 2)

    def update(params, gradients, state):
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    params = {"tower": [{"kernel": abstract(mesh, (SIZES[i], SIZES[i + 1]), "data", "model")} for i in range(4)]}
    state = jax.tree.map(lambda s: abstract(mesh, s.shape, dtype=s.dtype), jax.eval_shape(optimizer.init, params))
    return lower_step(loss, params, abstract(mesh, (BATCH, SIZES[0]), "data"), update=update, state=state)
