"""Batch norms with running means that the step returns, between dense layers; the batch is split."""

from .common import BATCH, SIZES, abstract, constrain, descend, jax, jnp, make_mesh, shardings_of

TOPOLOGY = "v5e:2x4"
# The sums of its backward pass over the batch have the size of the gains, whose gradients all reach the results.
SIZES_TELL = False
LAYERS = {f"dense{i}": (f"['dense{i}']",) for i in range(2)} | {f"norm{i}": (f"['norm{i}']",) for i in range(2)}


def lower(devices):
    mesh = make_mesh(devices, data=8)

    def loss(params, means, x):
        new = {}
        for i in range(2):
            with jax.named_scope(f"dense{i}"):
                x = constrain(mesh, x @ params[f"dense{i}"]["w"], "data")
            with jax.named_scope(f"norm{i}"):
                mean = x.mean(0)
                new[f"norm{i}"] = 0.9 * means[f"norm{i}"] + 0.1 * mean
                x = (x - mean) * jax.lax.rsqrt(x.var(0) + 1e-5) * params[f"norm{i}"]["gain"]
                x = jax.nn.relu(x)
        return jnp.mean(x ** 2), new

    def step(params, means, x):
        (value, means), gradients = jax.value_and_grad(loss, has_aux=True)(params, means, x)
        return descend(params, gradients), means, value

    params, means = {}, {}
    for i in range(2):
        params[f"dense{i}"] = {"w": abstract(mesh, (SIZES[i], SIZES[i + 1]))}
        params[f"norm{i}"] = {"gain": abstract(mesh, (SIZES[i + 1],))}
        means[f"norm{i}"] = abstract(mesh, (SIZES[i + 1],))
    return jax.jit(step, donate_argnums=(0, 1), out_shardings=(shardings_of(params), shardings_of(means), None)).lower(
        params, means, abstract(mesh, (BATCH, SIZES[0]), "data"))
