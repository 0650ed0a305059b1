"""A training step like Gemma's: one table for tokens and logits, one key head, capped scores, adafactor-like scaling."""

import jax
import jax.numpy as jnp

from .attention_block import attention, cross_entropy, rms
from .common import abstract, constrain, make_mesh, shardings_of

TOPOLOGY = "v6e:4x4"


def lower(devices):
    mesh = make_mesh(devices, fsdp=4, tensor=4)

    @jax.checkpoint
    def layer(x, p):
        p = jax.tree.map(lambda w: w.astype(jnp.bfloat16), p)
        x = x + rms(attention(rms(x, p["pre"]), p, cap=50.0), p["post"])
        h = rms(x, p["pre_ffn"])
        x = x + rms((jax.nn.gelu(h @ p["gate"], approximate=True) * (h @ p["up"])) @ p["down"], p["post_ffn"])
        return constrain(mesh, x, "fsdp"), None

    def loss(params, tokens, targets):
        table = params["table"].astype(jnp.bfloat16)
        x = constrain(mesh, table[tokens] * 16.0, "fsdp")
        x, _ = jax.lax.scan(layer, x, params["layers"])
        logits = jnp.einsum("btd,vd->btv", rms(x, params["last"]), table)
        return cross_entropy(30 * jnp.tanh(logits / 30), targets)

    def step(params, tokens, targets):
        value, gradients = jax.value_and_grad(loss)(params, tokens, targets)
        scaled = jax.tree.map(lambda g: g * jax.lax.rsqrt(jnp.mean(g * g) + 1e-30), gradients)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, params, scaled), value

    gains = {name: abstract(mesh, (3, 256)) for name in ("pre", "post", "pre_ffn", "post_ffn")}
    layers = {**gains, "wq": abstract(mesh, (3, 256, 8, 64), None, "fsdp", "tensor"),
              "wk": abstract(mesh, (3, 256, 1, 64), None, "fsdp"), "wv": abstract(mesh, (3, 256, 1, 64), None, "fsdp"),
              "wo": abstract(mesh, (3, 8, 64, 256), None, "tensor", None, "fsdp"),
              "gate": abstract(mesh, (3, 256, 1024), None, "fsdp", "tensor"),
              "up": abstract(mesh, (3, 256, 1024), None, "fsdp", "tensor"),
              "down": abstract(mesh, (3, 1024, 256), None, "tensor", "fsdp")}
    params = {"table": abstract(mesh, (2048, 256), "tensor", "fsdp"), "layers": layers, "last": abstract(mesh, (256,))}
    ids = abstract(mesh, (16, 128), "fsdp", dtype=jnp.int32)
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings_of(params), None)).lower(params, ids, ids)
