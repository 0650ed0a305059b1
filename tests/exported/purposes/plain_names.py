"""Weights that are separate arguments without a tree, and no scopes: a weight's own name is all there is."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)
    a, b, c, d = SIZES[:4]

    def loss(weights, x):
        for w in weights:
            x = constrain(mesh, jnp.tanh(x @ w), "data")
        return jnp.mean(x ** 2)

    def step(w1, w2, w3, x):
        value, (g1, g2, g3) = jax.value_and_grad(loss)((w1, w2, w3), x)
        return (w1 - 0.1 * g1, w2 - 0.1 * g2, w3 - 0.1 * g3), value

    weights = [abstract(mesh, shape, "model", "data") for shape in ((a, b), (b, c), (c, d))]
    out = (tuple(w.sharding for w in weights), None)
    return jax.jit(step, donate_argnums=(0, 1, 2), out_shardings=out).lower(*weights, abstract(mesh, (BATCH, a), "data"))
