"""One token of inference: a cache in the arguments is updated in place, heads are split."""

import jax
import jax.numpy as jnp

from .common import abstract, make_mesh, shardings_of

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)

    def step(weights, cache, x, at):
        def layer(x, one):
            w, keys, values = one
            q, k, v = (jnp.einsum("bd,dhk->bhk", x, w[name]) for name in ("q", "k", "v"))
            keys = jax.lax.dynamic_update_slice(keys, k[:, None], (0, at, 0, 0))
            values = jax.lax.dynamic_update_slice(values, v[:, None], (0, at, 0, 0))
            scores = jnp.einsum("bhk,bshk->bhs", q, keys, preferred_element_type=jnp.float32)
            scores = jnp.where(jnp.arange(keys.shape[1]) <= at, scores, -1e30)
            mixed = jnp.einsum("bhs,bshk->bhk", jax.nn.softmax(scores, -1).astype(x.dtype), values)
            return x + jnp.einsum("bhk,hkd->bd", mixed, w["o"]), (keys, values)

        x, cache = jax.lax.scan(layer, x, (weights, *cache))
        return cache, x

    def weight(*shape_and_spec):
        shape, spec = shape_and_spec
        return abstract(mesh, (3, *shape), None, *spec, dtype=jnp.bfloat16)

    weights = {name: weight((256, 8, 64), (None, "model")) for name in ("q", "k", "v")}
    weights["o"] = weight((8, 64, 256), ("model",))
    kept = abstract(mesh, (3, 8, 256, 8, 64), None, "data", None, "model", dtype=jnp.bfloat16)
    cache = (kept, kept)
    return jax.jit(step, donate_argnums=1, out_shardings=(shardings_of(cache), None)).lower(
        weights, cache, abstract(mesh, (8, 256), "data", dtype=jnp.bfloat16), abstract(mesh, (), dtype=jnp.int32))
