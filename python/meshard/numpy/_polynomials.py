"""Polynomials by their coefficients, of which the first has the highest power."""

from .._array_api.common import ops
from .._array_api.creation import as_tensor
from ._creation import floating, vander
from ._math_functions import convolve

__all__ = ["polyadd", "polyder", "polyfit", "polyint", "polymul", "polysub", "polyval"]


def polyval(p, x):
    """The polynomial's values at x."""
    p, x = as_tensor(p), as_tensor(x)
    made = ops.zeros_like(x, None)
    for i in range(p.shape[0]):
        made = made * x + p[i]
    return made


def _aligned(a, b):
    a, b = as_tensor(a), as_tensor(b)
    size = max(a.shape[0], b.shape[0])
    return (ops.pad(each, 0, (size - each.shape[0],), (0,), ()) for each in (a, b))


def polyadd(a1, a2):
    """The sum of two polynomials."""
    a1, a2 = _aligned(a1, a2)
    return a1 + a2


def polysub(a1, a2):
    """The difference of two polynomials."""
    a1, a2 = _aligned(a1, a2)
    return a1 - a2


def polymul(a1, a2):
    """The product of two polynomials."""
    return convolve(a1, a2)


def polyder(p, m=1):
    """The m-th derivative."""
    p = as_tensor(p)
    for _ in range(m):
        p = p[:-1] * ops.arange(p.shape[0] - 1, 0, -1, p.dtype)
    return p


def polyint(p, m=1, k=None):
    """The m-th integral, with the constants k, by default 0."""
    p = floating(p)
    constants = [0] * m if k is None else list(k) if isinstance(k, list | tuple) else [k] * m
    for constant in constants:
        powers = ops.arange(p.shape[0], 0, -1, p.dtype)
        p = ops.concat([p / powers, ops.full((1,), constant, p.dtype)], 0)
    return p


def polyfit(x, y, deg, w=None):
    """The coefficients of the polynomial that is nearest to the points (x, y) in the sum of squares, by QR."""
    x = floating(x)
    y = ops.astype(as_tensor(y), x.dtype)
    left, right = vander(x, deg + 1), ops.reshape(y, (y.shape[0], -1))
    if w is not None:
        weights = ops.expand_dims(ops.astype(as_tensor(w), x.dtype), 1)
        left, right = left * weights, right * weights
    scale = ops.sqrt(ops.sum(ops.square(left), 0, False))
    factors = ops.qr(left / scale)
    made = ops.triangular_solve(factors.r, ops.matmul(ops.matrix_transpose(factors.q), right), lower=False)
    return ops.reshape(made / ops.expand_dims(scale, 1), (deg + 1, *y.shape[1:]))
