"""Matrix products, decompositions and Fourier transforms."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import linalg

from calls.call import Call, operation
from calls.draw import DTYPES

FAMILY = "contractions"
jax.config.update("jax_default_matmul_precision", "highest")


def _numbers(d, shape, dtype):
    """Products use finite numbers: with infinities, the result would depend on the order of the sum."""
    d.manner = d.one_of(("plain", "plain", "ties"))
    return d.values(shape, dtype)


def _dtype(d):
    return d.dtype(1, 0.1, 0.15)


@operation(FAMILY)
def matmul(d):
    m, k, n, dtype = (d.integer(1, 4) for _ in range(3)), None, None, _dtype(d)
    m, k, n = m
    batch = d.one_of(((), (), (2,), (2, 2)))
    a, b = batch + (m, k), (batch if d.chance(0.6) else ()) + (k, n)
    if d.chance(0.15):
        a = (k,)
    if d.chance(0.15):
        b = (k,)
    return Call([_numbers(d, a, dtype), _numbers(d, b, dtype)], jnp.matmul)


@operation(FAMILY)
def dot_general(d):
    batch = d.shape(0, 1, 3, empty=0)
    contracted, left, right = (d.shape(0, 2, 4, empty=0.02) for _ in range(3))
    dtype = _dtype(d)
    sizes = {}
    names = [("b", i) for i in range(len(batch))], [("c", i) for i in range(len(contracted))]
    for kind, all_ in (("b", batch), ("c", contracted), ("l", left), ("r", right)):
        sizes.update({(kind, i): size for i, size in enumerate(all_)})
    lhs = d.shuffled(names[0] + names[1] + [("l", i) for i in range(len(left))])
    rhs = d.shuffled(names[0] + names[1] + [("r", i) for i in range(len(right))])
    at = {"lhs_contracting": [lhs.index(k) for k in names[1]], "rhs_contracting": [rhs.index(k) for k in names[1]],
          "lhs_batch": [lhs.index(k) for k in names[0]], "rhs_batch": [rhs.index(k) for k in names[0]]}
    numbers = ((at["lhs_contracting"], at["rhs_contracting"]), (at["lhs_batch"], at["rhs_batch"]))
    return Call([_numbers(d, tuple(sizes[k] for k in side), dtype) for side in (lhs, rhs)],
                lambda a, b: lax.dot_general(a, b, numbers), at)


@operation(FAMILY)
def einsum(d):
    spec, shapes = d.one_of((("ij,jk->ik", ((2, 3), (3, 4))), ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))),
                             ("ij,ij->", ((2, 3), (2, 3))), ("i,j->ij", ((3,), (4,))), ("ii->i", ((3, 3),)),
                             ("ij->ji", ((2, 3),)), ("bhqd,bhkd->bhqk", ((1, 2, 2, 3), (1, 2, 3, 3))),
                             ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 4))), ("...i,i->...", ((2, 3, 4), (4,))),
                             ("ij,kj->ki", ((2, 3), (4, 3))), ("ijk->k", ((2, 3, 4),))))
    dtype = _dtype(d)
    return Call([_numbers(d, s, dtype) for s in shapes], lambda *x: jnp.einsum(spec, *x), {"spec": spec})


@operation(FAMILY)
def tensordot(d):
    dtype, count = _dtype(d), d.integer(0, 2)
    shared, left, right = d.shape(count, count, 6, empty=0), d.shape(0, 2, 4), d.shape(0, 2, 4)
    return Call([_numbers(d, left + shared, dtype), _numbers(d, shared + right, dtype)],
                lambda a, b: jnp.tensordot(a, b, count), {"count": count})


@operation(FAMILY)
def outer(d):
    dtype = _dtype(d)
    return Call([_numbers(d, d.shape(1, 1, 5), dtype), _numbers(d, d.shape(1, 1, 5), dtype)], jnp.outer)


@operation(FAMILY)
def vecdot(d):
    shape, dtype = d.shape(1), d.dtype(1, 0.1)
    at = d.dimension(len(shape))
    return Call([_numbers(d, shape, dtype), _numbers(d, shape, dtype)], lambda a, b: jnp.vecdot(a, b, axis=at),
                {"dimension": at})


@operation(FAMILY)
def cross(d):
    shape, dtype = d.shape(0, 2, 6) + (3,), d.dtype(1, 0.2)
    return Call([_numbers(d, shape, dtype), _numbers(d, shape, dtype)], jnp.cross, {"dimension": -1})


@operation(FAMILY)
def trace(d):
    x = d.values(d.shape(2), d.dtype(1, 0.2, 0.1))
    k = d.integer(-1, 1)
    return Call([x], lambda x: jnp.trace(x, k, -2, -1), {"offset": k})


def _square(d, definite=False):
    """Well-conditioned matrices: the identity plus small elements."""
    n, batch = d.integer(1, 4), d.one_of(((), (), (2,)))
    x = d.rng.normal(size=batch + (n, n)).round(2)
    x = x @ np.swapaxes(x, -1, -2) / n + np.eye(n) if definite else x + 2 * np.eye(n) * d.one_of((1, -1))
    return x.round(3).astype(DTYPES[d.one_of(("f32", "f32", "f64"))])


@operation(FAMILY)
def cholesky(d):
    upper = d.chance(0.3)
    def f(x):
        x = (x + jnp.swapaxes(x, -1, -2)) / 2
        l = lax.linalg.cholesky(x, symmetrize_input=False)
        return jnp.swapaxes(l, -1, -2) if upper else l
    return Call([_square(d, True)], f, {"upper": upper}, mappable=False, matrix=True)


@operation(FAMILY)
def triangular_solve(d):
    a = _square(d)
    left, lower, unit, kind = d.chance(0.5), d.chance(0.5), d.chance(0.2), d.one_of(("none", "transpose", "adjoint"))
    n, m = a.shape[-1], d.integer(1, 3)
    b = _numbers(d, a.shape[:-2] + ((n, m) if left else (m, n)), "f32").astype(a.dtype)
    return Call([a, b], lambda a, b: lax.linalg.triangular_solve(
        a, b, left_side=left, lower=lower, unit_diagonal=unit, transpose_a=kind != "none", conjugate_a=kind == "adjoint"),
        {"left_side": left, "lower": lower, "unit_diagonal": unit, "transpose": kind}, mappable=False, matrix=True)


@operation(FAMILY)
def solve(d):
    a = _square(d)
    b = _numbers(d, a.shape[:-1] + (d.integer(1, 3),), "f32").astype(a.dtype)
    return Call([a, b], jnp.linalg.solve, mappable=False, matrix=True)


for _name, _f in (("inv", jnp.linalg.inv), ("det", jnp.linalg.det)):
    operation(FAMILY, _name)(lambda d, f=_f: Call([_square(d)], f, mappable=False, matrix=True))


@operation(FAMILY)
def slogdet(d):
    return Call([_square(d)], lambda x: tuple(jnp.linalg.slogdet(x)), mappable=False, matrix=True)


@operation(FAMILY)
def eigvalsh(d):
    # In f64, meshard's result is accurate to about 9 digits; docs/limits.md lists this.
    return Call([_square(d, True).astype(np.float32)], lambda x: jnp.linalg.eigvalsh((x + jnp.swapaxes(x, -1, -2)) / 2), mappable=False, matrix=True)


@operation(FAMILY)
def qr_r(d):
    """The absolute value of R, which is unique."""
    n = d.integer(1, 3)
    x = (d.rng.normal(size=(n + d.integer(0, 2), n)).round(2) + np.eye(n)[:1]).astype(np.float32)
    return Call([x], lambda x: jnp.abs(jnp.linalg.qr(x)[1]), mappable=False, matrix=True)


@operation(FAMILY)
def matrix_power(d):
    n = d.integer(-2, 4)
    return Call([_square(d)], lambda x: jnp.linalg.matrix_power(x, n), {"n": n}, mappable=False, matrix=True)


@operation(FAMILY)
def matrix_norm(d):
    words = {"frobenius": "fro", "column_sum": 1, "least_column_sum": -1, "row_sum": np.inf, "least_row_sum": -np.inf}
    word, keep = d.one_of(list(words)), d.chance(0.3)
    return Call([_numbers(d, d.shape(2, empty=0), d.one_of(("f32", "f64", "bf16")))],
                lambda x: jnp.linalg.matrix_norm(x, ord=words[word], keepdims=keep), {"norm": word, "keepdims": keep})


def _frequency(name, f, real=False, half=False):
    def draw(d):
        shape = d.shape(1, 3, empty=0)
        dtype = d.one_of(("f32", "f64") if real else ("c64", "c64", "c128"))
        axis = d.dimension(len(shape))
        at = {"dimension": axis}
        if half and shape[axis] < 2 or d.chance(0.4):
            at["n"] = d.integer(1, 7)
        return Call([_numbers(d, shape, dtype)], lambda x: f(x, at.get("n"), axis), at, matrix=True)
    operation(FAMILY, name)(draw)


_frequency("fft", jnp.fft.fft)
_frequency("ifft", jnp.fft.ifft)
_frequency("rfft", jnp.fft.rfft, real=True)
_frequency("irfft", jnp.fft.irfft, half=True)
_frequency("hfft", jnp.fft.hfft, half=True)
_frequency("ihfft", jnp.fft.ihfft, real=True)


@operation(FAMILY)
def fftn(d):
    x = _numbers(d, d.shape(1, 3, empty=0), "c64")
    dims = d.shuffled(range(x.ndim))[:d.integer(1, x.ndim)]
    return Call([x], lambda x: jnp.fft.fftn(x, axes=sorted(dims)), {"dimensions": dims}, matrix=True)


for _name, _f in (("fftshift", jnp.fft.fftshift), ("ifftshift", jnp.fft.ifftshift)):
    def _draw(d, f=_f):
        x = d.values(d.shape(1, 3), d.dtype(1, 0.2, 0.2))
        dims = d.shuffled(range(x.ndim))[:d.integer(1, x.ndim)]
        return Call([x], lambda x: f(x, tuple(dims)), {"dimensions": dims}, exact=True)
    operation(FAMILY, _name)(_draw)
