#!/usr/bin/env python3
"""Compares random calls with JAX: values and dtypes, gradients, and vmap.

usage: compare_jax.py [COUNT] [--seed SEED]

jax.numpy has the names of the array API too, so that each function is written once, for either namespace. Everything is
computed in float32. Two numbers agree if |a - b| <= 2e-4 * max(1, |b|); shapes and dtypes must be equal.
"""

import sys
import zlib

import jax
import jax.numpy as jnp
import meshard as ms
import numpy as np
import random_calls

TOLERANCE = 2e-4
FUNCTIONS = {}  # name -> (function of a namespace and arrays, how to draw the arrays)


def shape(rng, low=0, high=3):
    return tuple(int(n) for n in rng.choice([1, 2, 3, 4], rng.integers(low, high + 1)))


def one(low=-2.0, high=2.0, min_rank=0):
    """One array of a random shape."""
    return lambda rng: [rng.uniform(low, high, shape(rng, min_rank))]


def two(low=-2.0, high=2.0):
    """Two arrays that broadcast."""

    def draw(rng):
        whole = shape(rng)
        part = tuple(1 if rng.random() < 0.3 else size for size in whole)
        return [rng.uniform(low, high, whole), rng.uniform(low, high, part[rng.integers(0, len(part) + 1):])]

    return draw


def matrices(columns=None):
    """A batch of matrices that are far from singular."""

    def draw(rng):
        n = int(rng.integers(1, 5))
        arrays = [rng.uniform(-1, 1, (*shape(rng, 0, 1), n, n)) + 2 * n * np.eye(n)]
        return arrays + ([rng.uniform(-1, 1, (n, columns))] if columns else [])

    return draw


def add(name, function, draw):
    FUNCTIONS[name] = (function, draw)


def unary(names, low, high):
    for name in names.split():
        add(name, lambda xp, x, name=name: getattr(xp, name)(x), one(low, high))


unary("exp expm1 sin cos atan sinh cosh tanh asinh square negative abs sign", -2, 2)
unary("log log1p log2 log10 sqrt reciprocal", 0.2, 3)
unary("tan asin acos atanh", -0.9, 0.9)
unary("acosh", 1.2, 3)
for _name in "add subtract multiply atan2 hypot logaddexp maximum minimum copysign".split():
    add(_name, lambda xp, x, y, name=_name: getattr(xp, name)(x, y), two())
for _name in "divide pow remainder".split():
    add(_name, lambda xp, x, y, name=_name: getattr(xp, name)(x, y), two(0.3, 3))
for _name in "sum mean max min prod var std".split():
    add(_name, lambda xp, x, name=_name: getattr(xp, name)(x), one(0.2, 2))
    add(_name + " axis", lambda xp, x, name=_name: getattr(xp, name)(x, axis=-1, keepdims=True), one(0.2, 2, 1))
for _name in "cumulative_sum cumulative_prod".split():
    add(_name, lambda xp, x, name=_name: getattr(xp, name)(x, axis=0), one(0.2, 2, 1))
    add(_name + " initial", lambda xp, x, name=_name: getattr(xp, name)(x, axis=-1, include_initial=True),
        one(0.2, 2, 1))
add("reshape", lambda xp, x: xp.reshape(x, (-1,)), one())
add("permute_dims", lambda xp, x: xp.permute_dims(x, tuple(reversed(range(x.ndim)))), one())
add("flip", lambda xp, x: xp.flip(x, axis=0), one(min_rank=1))
add("roll", lambda xp, x: xp.roll(x, 2, axis=-1), one(min_rank=1))
add("tile", lambda xp, x: xp.tile(x, (2,)), one(min_rank=1))
add("repeat", lambda xp, x: xp.repeat(x, 3, axis=0), one(min_rank=1))
add("expand_dims", lambda xp, x: xp.expand_dims(x, axis=-1), one())
add("broadcast_to", lambda xp, x: xp.broadcast_to(x, (2, *x.shape)), one())
add("concat", lambda xp, x: xp.concat([x, x * 2], axis=-1), one(min_rank=1))
add("stack", lambda xp, x: xp.stack([x, x * x], axis=0), one())
add("where", lambda xp, x, y: xp.where(x > 0, x * y, y), two())
add("clip", lambda xp, x: xp.clip(x, -0.7, 0.9), one())
add("sort", lambda xp, x: xp.sort(x, axis=-1), one(min_rank=1))
add("sort descending", lambda xp, x: xp.sort(x, axis=0, descending=True), one(min_rank=1))
add("argsort", lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis=-1), axis=-1), one(min_rank=1))
add("argmax", lambda xp, x: x * xp.astype(xp.argmax(x, axis=-1, keepdims=True), x.dtype), one(min_rank=1))
add("take", lambda xp, x: xp.take(x, xp.asarray([0, 0, -1]), axis=0), one(min_rank=1))
add("diff", lambda xp, x: xp.diff(x, axis=-1), one(min_rank=1))
add("index row", lambda xp, x: x[0], one(min_rank=1))
add("index reversed", lambda xp, x: x[::-1, ...], one(min_rank=1))
add("index array", lambda xp, x: x[xp.asarray([[0], [-1]])], one(min_rank=1))
add("index new", lambda xp, x: x[None, ..., -1], one(min_rank=1))
for _name in ("tril", "triu"):
    add(_name, lambda xp, x, name=_name: getattr(xp, name)(x, k=1), matrices())
add("matmul", lambda xp, x, y: xp.matmul(x, y), matrices(3))
add("tensordot", lambda xp, x, y: xp.tensordot(x, y, axes=1), matrices(3))
add("vecdot", lambda xp, x: xp.vecdot(x, x + 1), one(min_rank=1))
add("outer", lambda xp, x: xp.linalg.outer(xp.reshape(x, (-1,)), xp.reshape(x * x, (-1,))), one())
add("cross", lambda xp, x: xp.linalg.cross(x, x[::-1] + 1), lambda rng: [rng.uniform(-2, 2, 3)])
for _name in "det inv cholesky trace diagonal matrix_transpose".split():
    add(_name, lambda xp, x, name=_name: getattr(xp.linalg, name)((x + xp.matrix_transpose(x)) / 2), matrices())
add("slogdet", lambda xp, x: xp.linalg.slogdet(x).logabsdet, matrices())
add("eigvalsh", lambda xp, x: xp.linalg.eigvalsh((x + xp.matrix_transpose(x)) / 2), matrices())
add("solve", lambda xp, x, y: xp.linalg.solve(x, y), matrices(2))
add("qr", lambda xp, x: xp.abs(xp.linalg.qr(x)[1]), matrices())
add("matrix_norm", lambda xp, x: xp.linalg.matrix_norm(x), matrices())
add("matrix_power", lambda xp, x: xp.linalg.matrix_power(x / 8, 3), matrices())
for _order in (1, 2, 3, np.inf):
    add(f"vector_norm {_order}", lambda xp, x, order=_order: xp.linalg.vector_norm(x, axis=-1, ord=order),
        one(0.2, 2, 1))
add("fft", lambda xp, x: xp.real(xp.fft.fft(x)) + xp.imag(xp.fft.fft(x, norm="ortho")), one(min_rank=1))
add("rfft", lambda xp, x: xp.abs(xp.fft.rfft(x + 3, axis=0)), one(min_rank=1))
add("irfft", lambda xp, x: xp.fft.irfft(xp.fft.rfft(x, n=6), n=6), one(min_rank=1))
add("fftshift", lambda xp, x: xp.fft.fftshift(x), one(min_rank=1))


def compared(found, expected, what):
    found, expected = found.numpy(), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{what}: {found.dtype}{found.shape}, expected {expected.dtype}{expected.shape}"
    with np.errstate(all="ignore"):
        same = (np.abs(found - expected) <= TOLERANCE * np.maximum(1, np.abs(expected))) | (found == expected)
    same |= np.isnan(found) & np.isnan(expected)
    if np.all(same):
        return None
    at = tuple(np.argwhere(~np.atleast_1d(same))[0])
    return f"{what}: {np.atleast_1d(found)[at]!r}, expected {np.atleast_1d(expected)[at]!r}"


def difference(function, arrays, rng):
    """The first difference in value, gradient or batch."""
    text = compared(function(ms, *map(ms.asarray, arrays)), function(jnp, *map(jnp.asarray, arrays)), "value")
    if text:
        return text
    weights = rng.uniform(0.5, 1.5, function(jnp, *map(jnp.asarray, arrays)).shape).astype(np.float32)
    every = tuple(range(len(arrays)))
    found = ms.grad(lambda *x: ms.sum(function(ms, *x) * weights), every)(*map(ms.asarray, arrays))
    expected = jax.grad(lambda *x: jnp.sum(function(jnp, *x) * weights), every)(*map(jnp.asarray, arrays))
    for i, pair in enumerate(zip(found, expected, strict=True)):
        text = compared(*pair, f"gradient {i}")
        if text:
            return text
    batch = [np.stack([array, array * np.float32(0.9), array * np.float32(1.05)]) for array in arrays]
    return compared(ms.vmap(lambda *x: function(ms, *x))(*map(ms.asarray, batch)),
                    jax.vmap(lambda *x: function(jnp, *x))(*map(jnp.asarray, batch)), "vmap")


def compare(count, seed, report=None):
    """Makes `count` calls, the same for the same seed. Returns the descriptions of the differences."""

    def describe(i, name):
        function, draw = FUNCTIONS[name]
        rng = np.random.default_rng([seed, i, zlib.crc32(name.encode())])
        arrays = [np.asarray(array, np.float32) for array in draw(rng)]
        text = random_calls.guarded(lambda: difference(function, arrays, rng))
        return text and f" of {', '.join(str(a.shape) for a in arrays)}: {text}"

    return random_calls.differences(FUNCTIONS, count, describe, report)


if __name__ == "__main__":
    sys.exit(random_calls.main(__doc__, FUNCTIONS, compare))
