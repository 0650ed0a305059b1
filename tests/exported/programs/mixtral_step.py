"""A training step like Mixtral's: two layers in a scan, each token goes to two of eight experts."""

import jax
import jax.numpy as jnp

from .attention_block import attention, cross_entropy, rms
from .common import abstract, constrain, make_mesh, shardings_of

TOPOLOGY = "v5e:4x4"


def experts(mesh, x, p):
    """x: [batch, length, width]; each expert takes at most `capacity` tokens of a row."""
    gates = jax.nn.softmax(jnp.einsum("btd,de->bte", x, p["router"]).astype(jnp.float32), -1)
    values, chosen = jax.lax.top_k(gates, 2)
    capacity = 2 * x.shape[1] // gates.shape[-1] * 2
    slots = jax.nn.one_hot(chosen, gates.shape[-1], dtype=jnp.int32)  # [b, t, 2, e]
    place = jnp.cumsum(slots.reshape(x.shape[0], -1, gates.shape[-1]), 1).reshape(slots.shape) * slots - 1
    send = jax.nn.one_hot(place, capacity, dtype=x.dtype)  # [b, t, 2, e, c]
    taken = jnp.einsum("btsec,btd->ebcd", send, x)
    taken = constrain(mesh, taken, "expert", "data")
    hidden = jax.nn.silu(jnp.einsum("ebcd,edf->ebcf", taken, p["gate"])) * jnp.einsum("ebcd,edf->ebcf", taken, p["up"])
    out = constrain(mesh, jnp.einsum("ebcf,efd->ebcd", hidden, p["down"]), "expert", "data")
    return jnp.einsum("btsec,bts,ebcd->btd", send, (values / values.sum(-1, keepdims=True)).astype(x.dtype), out)


def lower(devices):
    mesh = make_mesh(devices, data=4, expert=4)

    @jax.checkpoint
    def layer(x, p):
        p = jax.tree.map(lambda w: w.astype(jnp.bfloat16), p)
        x = x + attention(rms(x, p["before"]), p)
        x = x + experts(mesh, rms(x, p["after"]), p)
        return constrain(mesh, x, ("data", "expert")), None

    def loss(params, tokens, targets):
        x = constrain(mesh, params["table"].astype(jnp.bfloat16)[tokens], ("data", "expert"))
        x, _ = jax.lax.scan(layer, x, params["layers"])
        return cross_entropy(x @ params["head"].astype(jnp.bfloat16), targets)

    def step(params, tokens, targets):
        value, gradients = jax.value_and_grad(loss)(params, tokens, targets)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients), value

    layers = {"before": abstract(mesh, (2, 256)), "after": abstract(mesh, (2, 256)),
              "wq": abstract(mesh, (2, 256, 8, 64), None, "data", "expert"),
              "wk": abstract(mesh, (2, 256, 4, 64), None, "data", "expert"),
              "wv": abstract(mesh, (2, 256, 4, 64), None, "data", "expert"),
              "wo": abstract(mesh, (2, 8, 64, 256), None, "expert", None, "data"),
              "router": abstract(mesh, (2, 256, 8), None, "data"),
              "gate": abstract(mesh, (2, 8, 256, 512), None, "expert", "data"),
              "up": abstract(mesh, (2, 8, 256, 512), None, "expert", "data"),
              "down": abstract(mesh, (2, 8, 512, 256), None, "expert", None, "data")}
    params = {"table": abstract(mesh, (1024, 256), "expert", "data"), "layers": layers,
              "head": abstract(mesh, (256, 1024), "data", "expert")}
    ids = abstract(mesh, (16, 128), ("data", "expert"), dtype=jnp.int32)
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings_of(params), None)).lower(params, ids, ids)
