"""Layers and losses, compared with flax and optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen

from calls.call import Call, operation

FAMILY = "networks"


def _dtype(d):
    d.manner = d.one_of(("plain", "plain", "ties"))
    return d.one_of(("f32", "f32", "f32", "f64", "bf16"))


def _applied(module, x, **params):
    return module.apply({"params": params}, x)


@operation(FAMILY)
def layer_norm(d):
    dtype = _dtype(d)
    shape = d.shape(0, 2, 4) + (d.integer(2, 6),)
    x, scale, bias = d.values(shape, dtype), d.values(shape[-1:], dtype), d.values(shape[-1:], dtype)
    epsilon = d.one_of((1e-5, 1e-3))
    return Call([x, scale, bias], lambda x, s, b: _applied(
        linen.LayerNorm(epsilon, dtype=x.dtype, param_dtype=x.dtype, use_fast_variance=False), x, scale=s, bias=b),
        {"epsilon": epsilon})


@operation(FAMILY)
def rms_norm(d):
    dtype = _dtype(d)
    shape = d.shape(0, 2, 4) + (d.integer(1, 6),)
    epsilon = d.one_of((1e-6, 1e-3))
    return Call([d.values(shape, dtype), d.values(shape[-1:], dtype)], lambda x, s: _applied(
        linen.RMSNorm(epsilon, dtype=x.dtype, param_dtype=x.dtype), x, scale=s), {"epsilon": epsilon})


@operation(FAMILY)
def group_norm(d):
    dtype, groups = _dtype(d), d.integer(1, 3)
    channels = groups * d.integer(1, 2)
    shape = (d.integer(1, 2), *d.shape(0, 1, 3, empty=0), channels)
    epsilon = d.one_of((1e-5, 1e-3))
    return Call([d.values(shape, dtype)] + [d.values((channels,), dtype) for _ in range(2)], lambda x, s, b: _applied(
        linen.GroupNorm(groups, epsilon=epsilon, dtype=x.dtype, param_dtype=x.dtype, use_fast_variance=False), x,
        scale=s, bias=b), {"epsilon": epsilon, "groups": groups})


@operation(FAMILY)
def batch_norm(d):
    """The normalized values, and the statistics."""
    dtype, channels = _dtype(d), d.integer(1, 3)
    shape = (d.integer(2, 4), *d.shape(0, 1, 3, empty=0), channels)
    def f(x, s, b):
        module = linen.BatchNorm(False, momentum=0.0, epsilon=1e-5, dtype=x.dtype, param_dtype=x.dtype,
                                 use_fast_variance=False)
        stats = {"mean": jnp.zeros(channels), "var": jnp.ones(channels)}
        y, after = module.apply({"params": {"scale": s, "bias": b}, "batch_stats": stats}, x, mutable=["batch_stats"])
        return y
    return Call([d.values(shape, dtype)] + [d.values((channels,), dtype) for _ in range(2)], f, {"epsilon": 1e-5})


@operation(FAMILY)
def dot_product_attention(d):
    dtype = d.one_of(("f32", "f32", "f32", "bf16"))
    d.manner = "plain"
    batch, queries, keys, kv_heads, size = (d.integer(1, 2), d.integer(1, 3), d.integer(1, 4), d.integer(1, 2), 2)
    heads = kv_heads * d.integer(1, 2)
    x = [d.values((batch, queries, heads, size), dtype), d.values((batch, keys, kv_heads, size), dtype),
         d.values((batch, keys, kv_heads, size), dtype)]
    at = {"causal": d.chance(0.4), "mask": False, "bias": False}
    if d.chance(0.3):
        at["scale"] = d.one_of((1.0, 0.25))
    window = None
    if d.chance(0.3):
        at["left_window"], at["right_window"] = window = (d.integer(0, 2), d.integer(0, 2))
    if d.chance(0.4):
        at["bias"] = True
        x.append(d.values((batch, heads, queries, keys), dtype))
    if d.chance(0.3):
        mask = d.values((batch, 1, queries, keys), "bool")
        mask[..., 0] = True
        at["mask"] = True
        x.append(mask)

    def f(q, k, v, *rest):
        rest = list(rest)
        bias = rest.pop(0) if at["bias"] else None
        return jax.nn.dot_product_attention(q, k, v, bias, rest[0] if rest else None, scale=at.get("scale"),
                                            is_causal=at["causal"], local_window_size=window)
    return Call(x, f, at, mappable=False, matrix=True)


@operation(FAMILY)
def cross_entropy(d):
    dtype, classes = _dtype(d), d.integer(2, 5)
    shape = d.shape(0, 2, 6, empty=0)
    at = {"reduction": d.one_of(("mean", "sum", "none")), "label_smoothing": d.one_of((0, 0, 0.1, 0.5))}
    logits, targets = d.values(shape + (classes,), dtype), d.values(shape, "i32", 0, classes - 1)

    def f(logits, targets):
        wide = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
        soft = optax.smooth_labels(jax.nn.one_hot(targets, classes, dtype=wide.dtype), at["label_smoothing"])
        losses = optax.softmax_cross_entropy(wide, soft)
        return {"mean": jnp.mean, "sum": jnp.sum, "none": lambda x: x}[at["reduction"]](losses)
    return Call([logits, targets], f, at)


@operation(FAMILY)
def binary_cross_entropy(d):
    dtype, shape = _dtype(d), d.shape(0, 2, 6, empty=0)
    at = {"reduction": d.one_of(("mean", "sum", "none"))}

    def f(logits, targets):
        wide = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
        losses = optax.sigmoid_binary_cross_entropy(wide, targets.astype(wide.dtype))
        return {"mean": jnp.mean, "sum": jnp.sum, "none": lambda x: x}[at["reduction"]](losses)
    return Call([d.values(shape, dtype), d.values(shape, dtype, 0, 1)], f, at)


@operation(FAMILY)
def linear(d):
    dtype, n, m = _dtype(d), d.integer(1, 4), d.integer(1, 4)
    x = [d.values(d.shape(0, 2, 4) + (n,), dtype), d.values((m, n), dtype)]  # the weight in meshard's layout
    if d.chance(0.5):
        x.append(d.values((m,), dtype))
    return Call(x, lambda x, w, *b: jnp.matmul(x, w.T) + (b[0] if b else 0))


@operation(FAMILY)
def mlp(d):
    dtype = "f32"
    d.manner = "plain"
    n, hidden = d.integer(1, 3), d.integer(1, 4)
    word = d.one_of(("gelu", "silu", "relu"))
    x = [d.values((2, n), dtype), d.values((n, hidden), dtype), d.values((hidden,), dtype), d.values((hidden, n), dtype),
         d.values((n,), dtype)]

    def f(x, w1, b1, w2, b2):
        layers = {"up": {"kernel": w1, "bias": b1}, "down": {"kernel": w2, "bias": b2}}
        activation = getattr(linen, word)
        y = activation(linen.Dense(hidden, param_dtype=x.dtype).apply({"params": layers["up"]}, x))
        return linen.Dense(n, param_dtype=x.dtype).apply({"params": layers["down"]}, y)
    return Call(x, f, {"activation": word})


@operation(FAMILY)
def swiglu(d):
    dtype, shape = _dtype(d), d.shape()
    return Call([d.values(shape, dtype), d.values(shape, dtype)], lambda g, x: jax.nn.silu(g) * x)


@operation(FAMILY)
def geglu(d):
    dtype, shape, tanh = _dtype(d), d.shape(), d.chance(0.5)
    return Call([d.values(shape, dtype), d.values(shape, dtype)], lambda g, x: jax.nn.gelu(g, tanh) * x,
                {"form": "tanh" if tanh else "erf"})


@operation(FAMILY)
def glu(d):
    dtype, shape = _dtype(d), list(d.shape(1, 3, 12))
    axis = d.dimension(len(shape))
    shape[axis] *= 2
    return Call([d.values(tuple(shape), dtype)], lambda x: jax.nn.glu(x, axis), {"dimension": axis})


@operation(FAMILY)
def embedding(d):
    dtype = _dtype(d)
    words = d.integer(1, 5)
    return Call([d.values((words, 3), dtype), d.values(d.shape(0, 2, 6), "i32", 0, words - 1)],
                lambda table, i: linen.Embed(words, 3, param_dtype=table.dtype, dtype=table.dtype).apply(
                    {"params": {"embedding": table}}, i), exact=True)


@operation(FAMILY)
def rotary_embedding(d):
    """The formula of the paper, for both orders of the elements."""
    d.manner = "plain"
    size, base, pairs = 2 * d.integer(1, 3), d.one_of((10000, 100)), d.chance(0.5)
    x = d.values((d.integer(1, 3), d.integer(1, 2), size), "f32")
    positions = d.values((x.shape[0],), "i32", 0, 20)

    def f(x, positions):
        angles = positions[:, None, None].astype(x.dtype) * base ** (-2 * jnp.arange(size // 2).astype(x.dtype) / size)
        cos, sin = jnp.cos(angles), jnp.sin(angles)
        a, b = (x[..., ::2], x[..., 1::2]) if pairs else (x[..., :size // 2], x[..., size // 2:])
        turned = a * cos - b * sin, b * cos + a * sin
        return jnp.stack(turned, -1).reshape(x.shape) if pairs else jnp.concatenate(turned, -1)
    return Call([x, positions], f, {"base": base, "form": "pairs" if pairs else "halves"})
