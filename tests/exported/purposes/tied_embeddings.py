"""A language model whose table embeds the tokens and makes the logits; the table is split over all devices."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {"body": ("['up']", "['down']"), ("embed", "logits", ""): ("['table']",)}


def lower(devices):
    mesh = make_mesh(devices, data=8)
    d, f, vocabulary = SIZES[0], SIZES[1], SIZES[2]

    def loss(params, tokens):
        with jax.named_scope("embed"):
            x = constrain(mesh, params["table"][tokens], "data")
        with jax.named_scope("body"):
            x = constrain(mesh, x + jax.nn.relu(x @ params["up"]) @ jax.nn.relu(params["down"]), "data")
        with jax.named_scope("logits"):
            logits = constrain(mesh, jnp.einsum("btd,vd->btv", x, params["table"]), "data")
        return jnp.mean(jax.nn.logsumexp(logits, -1) - logits[..., 0])

    params = split_first(mesh, {"table": (vocabulary, d), "up": (d, f), "down": (f, d)}, "data")
    return lower_step(loss, params, abstract(mesh, (BATCH, 16), "data", dtype=jnp.int32))
