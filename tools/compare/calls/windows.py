"""Convolutions and pooling."""

import jax
import jax.numpy as jnp
from jax import lax

from calls.call import Call, operation

FAMILY = "windows"


def _padding(d, sizes):
    """The padding in our form and in JAX's."""
    if d.chance(0.6):
        word = d.one_of(("same", "valid", "same_lower"))
        return word, word.upper()
    pairs = [[d.integer(0, 2), d.integer(0, 2)] for _ in sizes]
    return pairs, [tuple(pair) for pair in pairs]


@operation(FAMILY)
def convolution(d):
    rank, groups = d.one_of((1, 1, 2)), d.one_of((1, 1, 1, 2))
    sizes = [d.integer(3, 6 if rank == 1 else 4) for _ in range(rank)]
    kernel = [d.integer(1, 3) for _ in range(rank)]
    features, results = groups * d.integer(1, 2), groups * d.integer(1, 2)
    strides = [d.one_of((1, 1, 2)) for _ in sizes]
    spread = [d.one_of((1, 1, 1, 2)) for _ in sizes]
    of_input = [1] * rank if d.chance(0.8) else [2] * rank
    ours, theirs = _padding(d, sizes)
    if of_input[0] != 1 and isinstance(ours, str):
        ours, theirs = [[1, 1]] * rank, [(1, 1)] * rank
    d.manner = d.one_of(("plain", "ties"))
    dtype = d.one_of(("f32", "f32", "f32", "f64", "bf16"))
    x = d.values((d.integer(1, 2), *sizes, features), dtype)
    w = d.values((*kernel, features // groups, results), dtype)
    letters = "DHW"[3 - rank:]
    names = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    return Call([x, w], lambda x, w: lax.conv_general_dilated(
        x, w, strides, theirs, of_input, spread, names, groups, precision="highest"),
        {"strides": strides, "padding": ours, "input_dilation": of_input, "kernel_dilation": spread,
         "feature_groups": groups})


@operation(FAMILY)
def conv_transpose(d):
    rank = d.one_of((1, 1, 2))
    sizes, kernel = [d.integer(2, 4) for _ in range(rank)], [d.integer(1, 3) for _ in range(rank)]
    strides, word = [d.integer(1, 2) for _ in sizes], d.one_of(("same", "valid"))
    d.manner = d.one_of(("plain", "ties"))
    x, w = d.values((1, *sizes, 2), "f32"), d.values((*kernel, 2, d.integer(1, 2)), "f32")
    letters = "DHW"[3 - rank:]
    return Call([x, w], lambda x, w: lax.conv_transpose(
        x, w, strides, word.upper(), dimension_numbers=(f"N{letters}C", f"{letters}IO", f"N{letters}C"),
        precision="highest"), {"strides": strides, "padding": word})


def _pool(name):
    def draw(d):
        from flax import linen
        sizes = [d.integer(2, 5) for _ in range(d.integer(1, 2))]
        window = [d.integer(1, min(3, n)) for n in sizes]
        strides = [d.integer(1, 2) for _ in sizes]
        ours, theirs = _padding(d, sizes)
        d.manner = d.one_of(("plain", "ties"))
        x = d.values((d.integer(1, 2), *sizes, d.integer(1, 2)), d.one_of(("f32", "f32", "f64", "bf16")))
        if isinstance(ours, str) and ours == "same_lower":
            ours, theirs = "same", "SAME"
        pool = linen.max_pool if name == "max_pool" else linen.avg_pool
        at = {"window": window, "strides": strides, "padding": ours}
        if name == "avg_pool":
            at["count_padding"] = count = d.chance(0.5)
            return Call([x], lambda x: pool(x, tuple(window), tuple(strides), theirs, count), at)
        return Call([x], lambda x: pool(x, tuple(window), tuple(strides), theirs), at)
    operation(FAMILY, name)(draw)


_pool("max_pool")
_pool("avg_pool")


def _window(name, combine, start):
    def draw(d):
        sizes = d.shape(1, 2, 20, empty=0)
        window = [d.integer(1, min(3, n)) for n in sizes]
        strides, spread = [d.integer(1, 2) for _ in sizes], [d.integer(1, 2) for _ in sizes]
        base = [d.one_of((1, 1, 2)) for _ in sizes]
        pairs = [[d.integer(0, 1) + 2, d.integer(0, 1) + 2] for _ in sizes]
        d.manner = d.one_of(("plain", "ties"))
        x = d.values(sizes, d.one_of(("f32", "f32", "f64")))
        return Call([x], lambda x: lax.reduce_window(
            x, jnp.asarray(start, x.dtype), combine, window, strides, pairs, base, spread),
            {"window": window, "strides": strides, "padding": pairs, "base_dilation": base, "window_dilation": spread},
            derivative=False)
    operation(FAMILY, name)(draw)


_window("reduce_window_sum", lax.add, 0)
_window("reduce_window_max", lax.max, -jnp.inf)
_window("reduce_window_min", lax.min, jnp.inf)
