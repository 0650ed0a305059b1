"""An encoder and a decoder that attends to it, both in scans over their layers; weights are split over all devices."""

from .common import (BATCH, SIZES, abstract, attention, attention_shapes, constrain, jax, jnp, lower_step, make_mesh, normalized,
                     split_first)

TOPOLOGY = "v5e:2x4"
LAYERS = {"encoder/attn": tuple(f"['encoder']['{n}']" for n in ("wq", "wk", "wv", "wo")),
          "encoder/mlp": ("['encoder']['up']", "['encoder']['down']"),
          "decoder/cross": tuple(f"['decoder']['{n}']" for n in ("cq", "ck", "cv", "co")),
          "decoder/mlp": ("['decoder']['up']", "['decoder']['down']"), "head": ("['head']",)}


def lower(devices):
    mesh = make_mesh(devices, fsdp=8)
    d = SIZES[0]

    def mlp(x, p):
        with jax.named_scope("mlp"):
            return constrain(mesh, x + jax.nn.relu(normalized(x) @ p["up"]) @ jax.nn.relu(p["down"]), "fsdp")

    def encode(x, p):
        with jax.named_scope("attn"):
            x = x + attention(normalized(x), p)
        return mlp(x, p), None

    def loss(params, source, target):
        with jax.named_scope("encoder"):
            memory, _ = jax.lax.scan(encode, source, params["encoder"])

        def decode(x, p):
            with jax.named_scope("cross"):
                q = jnp.einsum("btd,dk->btk", normalized(x), p["cq"])
                k, v = jnp.einsum("bsd,dk->bsk", memory, p["ck"]), jnp.einsum("bsd,dv->bsv", memory, p["cv"])
                weights = jax.nn.softmax(jnp.einsum("btk,bsk->bts", q, k), -1)
                x = x + jnp.einsum("bts,bsv->btv", weights, v) @ p["co"]
            return mlp(x, p), None

        with jax.named_scope("decoder"):
            x, _ = jax.lax.scan(decode, target, params["decoder"])
        with jax.named_scope("head"):
            return jnp.mean((x @ params["head"]) ** 2)

    k, v, f, ck, cv, df, out = SIZES[1:8]
    encoder = {**attention_shapes(d, k, v), "up": (d, f), "down": (f, d)}
    decoder = {"cq": (d, ck), "ck": (d, ck), "cv": (d, cv), "co": (cv, d), "up": (d, df), "down": (df, d)}
    layers = split_first(mesh, {"encoder": {n: (2, *s) for n, s in encoder.items()}, "decoder": {n: (4, *s) for n, s in decoder.items()}},
                         "fsdp", after=1)
    params = {**layers, "head": abstract(mesh, (d, out), "fsdp")}
    source, target = abstract(mesh, (BATCH, 16, d), "fsdp"), abstract(mesh, (BATCH, 8, d), "fsdp")
    return lower_step(loss, params, source, target)
