"""Two gradients in a step: the second is taken at weights that the first has moved."""

from .common import BATCH, SIZES, abstract, constrain, descend, jax, jnp, make_mesh, shardings_of, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {f"dense{i}": (f"['w{i}']",) for i in range(2)}


def lower(devices):
    mesh = make_mesh(devices, data=8)

    def loss(params, x):
        for i in range(2):
            with jax.named_scope(f"dense{i}"):
                x = constrain(mesh, jax.nn.silu(x @ params[f"w{i}"]), "data")
        return jnp.mean(x ** 2)

    def step(params, x):
        value, first = jax.value_and_grad(loss)(params, x)
        moved = jax.tree.map(lambda p, g: p + 0.05 * g, params, first)
        again, second = jax.value_and_grad(loss)(moved, x)
        return descend(params, second), (value, again)

    params = split_first(mesh, {f"w{i}": (SIZES[i], SIZES[i + 1]) for i in range(2)}, "data")
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings_of(params), None)).lower(
        params, abstract(mesh, (BATCH, SIZES[0]), "data"))
