"""A language model whose embedding and logits are split over the vocabulary, with weights fully sharded over the other axis."""

from .common import BATCH, SIZES, abstract, attention, attention_shapes, constrain, jax, jnp, lower_step, make_mesh, normalized, split_first

TOPOLOGY = "v5e:4x4"
LAYERS = {"embed": ("['table']",), "logits": ("['unembed']",)} | {
    f"block{i}/{part}": tuple(f"['block{i}']['{n}']" for n in names) for i in range(2)
    for part, names in {"attn": ("wq", "wk", "wv", "wo"), "mlp": ("up", "down")}.items()}


def lower(devices):
    mesh = make_mesh(devices, fsdp=4, model=4)
    d, vocabulary, other = SIZES[0], SIZES[8], SIZES[9]

    def loss(params, tokens):
        with jax.named_scope("embed"):
            hot = jax.nn.one_hot(tokens[:, :-1], vocabulary, dtype=jnp.float32)
            x = constrain(mesh, constrain(mesh, hot, "fsdp", None, "model") @ params["table"], "fsdp")
        for i in range(2):
            p = params[f"block{i}"]
            with jax.named_scope(f"block{i}"):
                with jax.named_scope("attn"):
                    x = constrain(mesh, x + attention(normalized(x), p), "fsdp")
                with jax.named_scope("mlp"):
                    x = constrain(mesh, x + jax.nn.relu(normalized(x) @ p["up"]).reshape(*x.shape[:2], -1, 3).max(-1) @ p["down"], "fsdp")
        with jax.named_scope("logits"):
            logits = constrain(mesh, normalized(x) @ params["unembed"], "fsdp", None, "model")
            wanted = jax.nn.one_hot(tokens[:, 1:], other, dtype=jnp.float32)
            return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits, -1) * constrain(mesh, wanted, "fsdp", None, "model"), -1))

    params = {"table": abstract(mesh, (vocabulary, d), "model", "fsdp"), "unembed": abstract(mesh, (d, other), "fsdp", "model")}
    for i in range(2):
        k, v, f = SIZES[1 + 3 * i:4 + 3 * i]
        params[f"block{i}"] = split_first(mesh, {**attention_shapes(d, k, v), "up": (d, 3 * f), "down": (f, d)}, "fsdp")
    return lower_step(loss, params, abstract(mesh, (BATCH, 9, ), "fsdp", dtype=jnp.int32))
