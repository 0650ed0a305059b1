"""Weights that a manual computation gathers itself, so that the gradients are scattered by the derivative."""

from jax.sharding import PartitionSpec as P

from .common import BATCH, SIZES, abstract, descend, jax, jnp, make_mesh, shardings_of, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {f"dense{i}": (f"['w{i}']",) for i in range(3)}


def lower(devices):
    mesh = make_mesh(devices, data=8)

    def local_loss(params, x):
        for i in range(3):
            with jax.named_scope(f"dense{i}"):
                whole = jax.lax.all_gather(params[f"w{i}"], "data", axis=0, tiled=True)
                x = jax.nn.relu(x @ whole)
        return jnp.mean(x ** 2)

    def local_step(params, x):
        value, gradients = jax.value_and_grad(local_loss)(params, x)
        return descend(params, gradients), jax.lax.pmean(value, "data")

    step = jax.shard_map(local_step, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=(P("data"), P()))
    params = split_first(mesh, {f"w{i}": (SIZES[i], SIZES[i + 1]) for i in range(3)}, "data")
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings_of(params), None)).lower(
        params, abstract(mesh, (BATCH, SIZES[0]), "data"))
