"""A generator and a discriminator that are trained by one step, each with a loss of its own."""

from .common import BATCH, SIZES, abstract, constrain, descend, jax, jnp, make_mesh, shardings_of, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {"generator": ("['generator']",), "discriminator": ("['discriminator']",)}


def lower(devices):
    mesh = make_mesh(devices, data=8)

    def generator(p, z):
        with jax.named_scope("generator"):
            return constrain(mesh, jnp.tanh(jax.nn.relu(z @ p["w1"]) @ p["w2"]), "data")

    def discriminator(p, x):
        with jax.named_scope("discriminator"):
            return jnp.mean(constrain(mesh, jax.nn.relu(x @ p["w1"]) @ p["w2"], "data"))

    def step(params, z, x):
        g, d = params["generator"], params["discriminator"]
        loss_g, gradient_g = jax.value_and_grad(lambda p: -discriminator(d, generator(p, z)))(g)
        loss_d, gradient_d = jax.value_and_grad(lambda p: discriminator(p, generator(g, z)) - discriminator(p, x))(d)
        return {"generator": descend(g, gradient_g), "discriminator": descend(d, gradient_d)}, loss_g, loss_d

    a, b, c, e, f = SIZES[:5]
    params = split_first(mesh, {"generator": {"w1": (a, b), "w2": (b, c)}, "discriminator": {"w1": (c, e), "w2": (e, f)}}, "data")
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings_of(params), None, None)).lower(
        params, abstract(mesh, (BATCH, a), "data"), abstract(mesh, (BATCH, c), "data"))
