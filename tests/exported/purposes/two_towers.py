"""Contrastive training of an image and a text tower: the embeddings of all devices are gathered."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {f"{tower}/{part}": (f"['{tower}']['{part}']",) for tower in ("image", "text") for part in ("hidden", "project")}


def lower(devices):
    mesh = make_mesh(devices, data=8)
    a, b, c, e, out = SIZES[:5]

    def encode(tower, p, x):
        with jax.named_scope(tower):
            with jax.named_scope("hidden"):
                x = jax.nn.gelu(x @ p["hidden"])
            with jax.named_scope("project"):
                return constrain(mesh, x @ p["project"], "data")

    def loss(params, image, text):
        u, v = encode("image", params["image"], image), encode("text", params["text"], text)
        with jax.named_scope("contrast"):
            logits = constrain(mesh, u @ constrain(mesh, v).T, "data")
            return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.sum(u * v, -1))

    params = split_first(mesh, {"image": {"hidden": (a, b), "project": (b, out)}, "text": {"hidden": (c, e), "project": (e, out)}}, "data")
    return lower_step(loss, params, abstract(mesh, (BATCH, a), "data"), abstract(mesh, (BATCH, c), "data"))
