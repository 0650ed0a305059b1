"""A variational autoencoder with noise from a key; weights split over `fsdp` beside a batch over both axes."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:4x4"
LAYERS = {"encoder": ("['hidden']",), "encoder/mean": ("['mean']",), "encoder/spread": ("['spread']",),
          "decoder/in": ("['back']",), "decoder/out": ("['out']",)}


def lower(devices):
    mesh = make_mesh(devices, data=2, fsdp=8)
    batch = ("data", "fsdp")
    a, h, z, d = SIZES[:4]

    def loss(params, key, x):
        with jax.named_scope("encoder"):
            hidden = constrain(mesh, jax.nn.gelu(x @ params["hidden"]), batch)
            with jax.named_scope("mean"):
                mean = constrain(mesh, hidden @ params["mean"], batch)
            with jax.named_scope("spread"):
                spread = constrain(mesh, (hidden @ params["spread"]).reshape(-1, z, 3).mean(-1), batch)
        noise = jax.random.normal(key, (BATCH * 2, z))
        code = constrain(mesh, mean + jnp.exp(0.5 * spread) * noise, batch)
        with jax.named_scope("decoder"):
            with jax.named_scope("in"):
                hidden = constrain(mesh, jax.nn.gelu(code @ params["back"]), batch)
            with jax.named_scope("out"):
                out = constrain(mesh, hidden @ params["out"], batch)
        return jnp.mean((out - x) ** 2) - 0.5 * jnp.mean(1 + spread - mean ** 2 - jnp.exp(spread))

    params = split_first(mesh, {"hidden": (a, h), "mean": (h, z), "spread": (h, 3 * z), "back": (z, d), "out": (d, a)}, "fsdp")
    return lower_step(loss, params, abstract(mesh, (2,), dtype=jnp.uint32), abstract(mesh, (BATCH * 2, a), batch))
