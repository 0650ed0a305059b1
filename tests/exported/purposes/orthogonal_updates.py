"""Updates that are made orthogonal by products (Newton-Schulz), so that gradients reach the weights through matrix products."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {f"dense{i}": (f"['w{i}']",) for i in range(3)}


def lower(devices):
    mesh = make_mesh(devices, data=8)

    def loss(params, x):
        for i in range(3):
            with jax.named_scope(f"dense{i}"):
                x = constrain(mesh, jax.nn.relu(x @ params[f"w{i}"]), "data")
        return jnp.mean(x ** 2)

    def orthogonal(g):
        g = g / (jnp.linalg.norm(g) + 1e-6)
        for _ in range(2):
            g = 1.5 * g - 0.5 * g @ (g.T @ g)
        return g

    def update(params, gradients, state):
        state = jax.tree.map(lambda m, g: 0.9 * m + g, state, gradients)
        return jax.tree.map(lambda p, m: p - 0.01 * orthogonal(m), params, state), state

    params = split_first(mesh, {f"w{i}": (SIZES[i], SIZES[i + 1]) for i in range(3)}, "data")
    return lower_step(loss, params, abstract(mesh, (BATCH, SIZES[0]), "data"), update=update, state=params)
