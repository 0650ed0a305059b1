"""Optax's adam with a limit on the norm; the weights and both states are split over all devices."""

import optax

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {f"dense{i}": (f"['w{i}']", f"['b{i}']") for i in range(4)}


def lower(devices):
    mesh = make_mesh(devices, data=8)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))

    def loss(params, x):
        for i in range(4):
            with jax.named_scope(f"dense{i}"):
                x = constrain(mesh, jax.nn.silu(x @ params[f"w{i}"] + params[f"b{i}"]), "data")
        return jnp.mean(x ** 2)

    def update(params, gradients, state):
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    shapes = {f"w{i}": (SIZES[i], SIZES[i + 1]) for i in range(4)} | {f"b{i}": (SIZES[i + 1],) for i in range(4)}
    params = split_first(mesh, shapes, "data")
    state = jax.tree.map(lambda s: abstract(mesh, s.shape, *(["data"] if s.shape else []), dtype=s.dtype),
                         jax.eval_shape(optimizer.init, params))
    return lower_step(loss, params, abstract(mesh, (BATCH, SIZES[0]), "data"), update=update, state=state)
