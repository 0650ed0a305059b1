"""numpy.linalg's names with its arguments."""

import math

from .. import linalg as _linalg
from .._array_api.common import axes_of, ops
from .._array_api.creation import as_tensor
from ..linalg import (
    cholesky, cross, det, diagonal, eig, eigh, eigvals, eigvalsh, inv, matrix_norm, matrix_power, matrix_transpose,
    outer, qr, slogdet, solve, svdvals, trace, vecdot, vector_norm)
from ._math_functions import tensordot

__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
           "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet",
           "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm"]

matmul = ops.matmul


def svd(a, full_matrices=True, compute_uv=True):
    """The singular value decomposition a = U diag(S) Vh; without `compute_uv` only S."""
    return _linalg.svd(as_tensor(a), full_matrices=full_matrices) if compute_uv else svdvals(as_tensor(a))


def matrix_rank(A, rtol=None):
    """The number of singular values above rtol times the largest."""
    return _linalg.matrix_rank(as_tensor(A), rtol=rtol)


def pinv(a, rtol=None):
    """The pseudo-inverses."""
    return _linalg.pinv(as_tensor(a), rtol=rtol)


def norm(x, ord=None, axis=None, keepdims=False):
    """The norm of a vector, a matrix, or of all elements, along one dimension or two."""
    x = as_tensor(x)
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keepdims)
    axes = axes_of(axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError(f"norm of a tensor of rank {x.ndim} needs one dimension or two, not {axes}")
    moved = ops.moveaxis(x, axes, (x.ndim - 2, x.ndim - 1))
    made = matrix_norm(moved, ord="fro" if ord is None else ord)
    return ops.expand_dims(ops.expand_dims(made, min(axes)), max(axes)) if keepdims else made


def multi_dot(arrays):
    """The product of matrices, in the order that needs the fewest multiplications."""
    parts = [as_tensor(each) for each in arrays]
    first, last = parts[0].ndim == 1, parts[-1].ndim == 1
    parts[0] = ops.expand_dims(parts[0], 0) if first else parts[0]
    parts[-1] = ops.expand_dims(parts[-1], 1) if last else parts[-1]
    made = _product(parts)
    return ops.squeeze(made, tuple(i for i, each in enumerate((first, last)) if each)) if first or last else made


def _product(parts):
    sizes = [each.shape[0] for each in parts] + [parts[-1].shape[1]]
    best = {(i, i): (0, None) for i in range(len(parts))}
    for width in range(1, len(parts)):
        for i in range(len(parts) - width):
            j = i + width
            best[i, j] = min((best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                             for k in range(i, j))

    def made(i, j):
        if i == j:
            return parts[i]
        k = best[i, j][1]
        return ops.matmul(made(i, k), made(k + 1, j))

    return made(0, len(parts) - 1)


def tensorsolve(a, b):
    """x with tensordot(a, x, x.ndim) == b."""
    a, b = as_tensor(a), as_tensor(b)
    inner = a.shape[b.ndim:]
    return ops.reshape(solve(ops.reshape(a, (b.size, math.prod(inner))), ops.flatten(b)), inner)


def tensorinv(a, ind=2):
    """The inverse for tensordot over the first `ind` dimensions."""
    a = as_tensor(a)
    first, rest = a.shape[:ind], a.shape[ind:]
    return ops.reshape(inv(ops.reshape(a, (math.prod(first), math.prod(rest)))), (*rest, *first))
