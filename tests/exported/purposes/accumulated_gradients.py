"""Gradients of four parts of the batch, added up in a scan before the update; weights are split over all devices."""

from .common import BATCH, SIZES, abstract, constrain, descend, jax, jnp, make_mesh, shardings_of, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {"up": ("['up']",), "mid": ("['mid']",), "down": ("['down']",)}


def lower(devices):
    mesh = make_mesh(devices, data=8)
    a, b, c, d = SIZES[:4]
    params = split_first(mesh, {"up": (a, b), "mid": (b, c), "down": (c, d)}, "data")

    def loss(params, x):
        x = constrain(mesh, x, "data")
        for name in ("up", "mid", "down"):
            with jax.named_scope(name):
                x = jax.nn.silu(x @ params[name])
        return jnp.mean(x ** 2)

    def step(params, batches):
        def part(carry, x):
            value, gradients = jax.value_and_grad(loss)(params, x)
            return (carry[0] + value, jax.tree.map(jnp.add, carry[1], gradients)), None

        zeros = jax.tree.map(lambda p: jax.lax.with_sharding_constraint(jnp.zeros(p.shape, p.dtype), p.sharding), abstract_params)
        (value, gradients), _ = jax.lax.scan(part, (0.0, zeros), batches)
        return descend(params, gradients), value / 4

    abstract_params = params
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings_of(params), None)).lower(
        params, abstract(mesh, (4, BATCH, a), None, "data"))
