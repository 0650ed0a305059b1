"""Whole weights on every device, and Adam's states split over all: gradients are scattered, and the new weights gathered."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {f"dense{i}": (f"['w{i}']",) for i in range(3)}


def lower(devices):
    mesh = make_mesh(devices, data=8)

    def loss(params, x):
        for i in range(3):
            with jax.named_scope(f"dense{i}"):
                x = constrain(mesh, jnp.tanh(x @ params[f"w{i}"]), "data")
        return jnp.mean(x ** 2)

    def update(params, gradients, state):
        gradients = jax.tree.map(lambda g: constrain(mesh, g, "data"), gradients)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradients)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], gradients)
        steps = jax.tree.map(lambda m, s: constrain(mesh, m / (jnp.sqrt(s) + 1e-8), "data"), mean, square)
        return jax.tree.map(lambda p, s: p - 1e-3 * s, params, steps), {"mean": mean, "square": square}

    shapes = {f"w{i}": (SIZES[i], SIZES[i + 1]) for i in range(3)}
    params = {name: abstract(mesh, shape) for name, shape in shapes.items()}
    split = split_first(mesh, shapes, "data")
    return lower_step(loss, params, abstract(mesh, (BATCH, SIZES[0]), "data"), update=update, state={"mean": split, "square": split})
