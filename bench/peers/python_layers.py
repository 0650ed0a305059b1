"""The layers of jax_layers.py with meshard's Python package: the same ops in the same order."""

import types

RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
SHAPES = {"norm1_scale": (256,), "norm1_shift": (256,), "query": (256, 4, 64), "key": (256, 4, 64), "value": (256, 4, 64),
          "out": (4, 64, 256), "norm2_scale": (256,), "norm2_shift": (256,), "up": (256, 1024), "up_bias": (1024,),
          "down": (1024, 256), "down_bias": (256,)}
SPLIT = {"query": (None, "tp", None), "key": (None, "tp", None), "value": (None, "tp", None), "out": ("tp", None, None),
         "up": (None, "tp"), "up_bias": ("tp",), "down": ("tp", None), "head": (None, "tp")}


def shapes(layers, length, words=1024, width=256):
    """The shapes of the parameters, in the structure of the model."""
    return {"words": (words, width), "positions": (length, width), "norm_scale": (width,), "norm_shift": (width,),
            "head": (width, words), "blocks": [dict(SHAPES) for _ in range(layers)]}


def normalized(ms, x, scale, shift):
    center = x - ms.mean(x, axis=-1, keepdims=True)
    variance = ms.mean(center * center, axis=-1, keepdims=True)
    return center * ms.rsqrt(variance + 1e-5) * scale + shift


def layer_of(ms, spread, x, block):
    h = normalized(ms, x, block["norm1_scale"], block["norm1_shift"])
    q, k, v = (ms.einsum("btd,dhk->bhtk", h, block[name]) for name in ("query", "key", "value"))
    scores = ms.einsum("bhtk,bhsk->bhts", q, k) * (q.shape[-1] ** -0.5)
    length = x.shape[1]
    scores = ms.where(ms.tril(ms.ones((length, length), dtype=ms.bool)), scores, -1e30)
    scores = ms.exp(scores - ms.stop_gradient(ms.max(scores, axis=-1, keepdims=True)))
    heads = ms.einsum("bhts,bhsk->bthk", scores / ms.sum(scores, axis=-1, keepdims=True), v)
    x = spread(x + ms.einsum("bthk,hkd->btd", heads, block["out"]))
    h = normalized(ms, x, block["norm2_scale"], block["norm2_shift"]) @ block["up"] + block["up_bias"]
    h = 0.5 * h * (1 + ms.tanh(0.7978845608028654 * (h + 0.044715 * (h * h * h))))
    return spread(x + h @ block["down"] + block["down_bias"])


def adam_step(ms, spread, model, means, squares, steps, tokens, targets):
    def loss_of(model):
        x = spread(model["words"][tokens] + model["positions"])
        for block in model["blocks"]:
            x = layer_of(ms, spread, x, block)
        logits = normalized(ms, x, model["norm_scale"], model["norm_shift"]) @ model["head"]
        return -ms.mean(ms.take_along_axis(ms.log_softmax(logits, -1), targets[..., None], axis=-1))

    loss, gradients = ms.value_and_grad(loss_of)(model)
    steps = steps + 1
    count = ms.astype(steps, ms.float32)
    rate = RATE * ms.sqrt(1 - BETA2 ** count) / (1 - BETA1 ** count)
    means = ms.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, means, gradients)
    squares = ms.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, squares, gradients)
    model = ms.tree.map(lambda w, m, v: w - rate * m / (ms.sqrt(v) + EPSILON), model, means, squares)
    return model, means, squares, steps, loss


def step_and_arguments(ms, layers, batch, length):
    """The step, with `text(*arguments)` that traces and lowers it anew, and its arguments on a mesh of 2 x 4 devices."""
    import numpy as np
    mesh = ms.Mesh({"dp": 2, "tp": 4})

    def spread(x):
        return ms.mark_sharding(x, mesh, ms.P("dp", None, None))

    def placed(name, shape):
        return ms.mark_sharding(ms.asarray(np.full(shape, 0.01, np.float32)), mesh, ms.P(*SPLIT.get(name, ())))

    def model():
        all_shapes = shapes(layers, length)
        blocks = [{name: placed(name, shape) for name, shape in block.items()} for block in all_shapes.pop("blocks")]
        return {**{name: placed(name, shape) for name, shape in all_shapes.items()}, "blocks": blocks}

    tokens = ms.mark_sharding(ms.asarray((np.arange(batch * length, dtype=np.int32) * 7 % 1024).reshape(batch, length)),
                              mesh, ms.P("dp", None))
    arguments = (model(), model(), model(), ms.asarray(np.int32(0)), tokens, tokens)

    def step(*given):
        return adam_step(ms, spread, *given)

    return types.SimpleNamespace(call=ms.jit(step), text=lambda *given: ms.module_text(step, *given)), arguments
