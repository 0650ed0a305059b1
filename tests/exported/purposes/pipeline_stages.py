"""A pipeline by hand: each device has the weights of its stage, activations go to the next one by ppermute, and the data
parallel copies add up their gradients."""

from jax.sharding import PartitionSpec as P

from .common import BATCH, SIZES, abstract, jax, jnp, lower_step, make_mesh

TOPOLOGY = "v5e:2x4"
LAYERS = {"stage": ("['up']", "['down']"), "first": ("['first']",)}


def lower(devices):
    mesh = make_mesh(devices, data=2, stage=4)
    d, f, a = SIZES[:3]

    def stages(up, down, x):
        """x: [microbatches, rows, d], the same on all stages."""
        index = jax.lax.axis_index("stage")
        up, down, x = jax.lax.pcast(up[0], ("data",), to="varying"), jax.lax.pcast(down[0], ("data",), to="varying"), x

        def tick(carry, t):
            state, out = carry
            state = jnp.where(index == 0, x[jnp.minimum(t, x.shape[0] - 1)], state)
            with jax.named_scope("stage"):
                state = state + jnp.tanh(state @ up) @ jnp.tanh(down)
            out = out.at[jnp.maximum(t - 3, 0)].set(state)
            return (jax.lax.ppermute(state, "stage", [(i, (i + 1) % 4) for i in range(4)]), out), None

        start = jax.lax.pcast(jnp.zeros_like(x[0]), ("stage",), to="varying")
        (_, out), _ = jax.lax.scan(tick, (start, jax.lax.pcast(jnp.zeros_like(x), ("stage",), to="varying")), jnp.arange(x.shape[0] + 3))
        return jax.lax.psum(jnp.where(index == 3, out, 0), "stage")

    def loss(params, x):
        with jax.named_scope("first"):
            x = x @ params["first"]
        run = jax.shard_map(stages, mesh=mesh, in_specs=(P("stage"), P("stage"), P(None, "data")), out_specs=P(None, "data"))
        return jnp.mean(run(params["up"], params["down"], x) ** 2)

    params = {"first": abstract(mesh, (a, d)), "up": abstract(mesh, (4, d, f), "stage"), "down": abstract(mesh, (4, f, d), "stage")}
    return lower_step(loss, params, abstract(mesh, (4, BATCH, a), None, "data"))
