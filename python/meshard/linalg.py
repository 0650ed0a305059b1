"""Linear algebra: the `linalg` extension of the array API standard, and what NumPy, SciPy and JAX have besides.

Matrices are the last two dimensions; those before them are batches. On CPUs, LAPACK computes decompositions. All
functions but `schur` have derivatives.
"""

import math
from collections import namedtuple

import numpy

from . import _distributed as distributed
from ._array_api.common import COMPLEX, DEFAULT_FLOAT, FLOATS, Tensor, ops
from ._array_api.creation import as_tensor
from ._array_api.data_types import result_type
from ._array_api.linear_algebra import EighResult, QRResult, matmul, matrix_transpose, tensordot, vecdot
from ._array_api.manipulation import broadcast_shapes
from ._names import shown as _shown

__all__ = ["cholesky", "cholesky_solve", "cond", "cross", "det", "diagonal", "distributed", "eig", "eigh", "eigvals",
           "eigvalsh", "expm", "inv", "logm", "lstsq", "lu", "lu_factor", "lu_pivots_to_permutation", "lu_solve", "matmul",
           "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "schur", "slogdet",
           "solve", "sqrtm", "svd", "svdvals", "tensordot", "tensorsolve", "trace", "triangular_solve", "vecdot",
           "vector_norm"]
__getattr__, __dir__ = _shown(__name__)

EigResult = namedtuple("EigResult", ["eigenvalues", "eigenvectors"])
SlogdetResult = namedtuple("SlogdetResult", ["sign", "logabsdet"])
SVDResult = namedtuple("SVDResult", ["U", "S", "Vh"])

outer, triangular_solve = ops.outer, ops.triangular_solve
cholesky_solve, expm, logm, lstsq, lu, lu_factor, lu_pivots_to_permutation, lu_solve, schur, sqrtm, tensorsolve = (
    ops.cholesky_solve, ops.expm, ops.logm, ops.lstsq, ops.lu, ops.lu_factor, ops.lu_pivots_to_permutation,
    ops.lu_solve, ops.schur, ops.sqrtm, ops.tensorsolve)


def _real(x):
    """The dtype of absolute values."""
    return numpy.zeros(0, x.dtype).real.dtype


def _matrices(x, name):
    """A tensor of matrices in a dtype that NumPy's linear algebra has."""
    x = as_tensor(x)
    if x.ndim < 2:
        raise ValueError(f"[{name}] needs matrices, not a tensor of rank {x.ndim}")
    if x.dtype in COMPLEX or x.dtype in FLOATS and x.dtype.itemsize >= 4:
        return x
    return ops.astype(x, DEFAULT_FLOAT)


def solve(x1, x2, /):
    """Solves x1 @ x = x2 for square matrices x1. A vector x2, of rank 1, gives a vector.

    x1 is [..., n, n], and x2 [n] or [..., n, k]; batches broadcast. The result has the shape of x2 with the batches of
    both. Singular matrices give infinities or NaN.

        >>> ms.linalg.solve(ms.asarray([[2.0, 0.0], [0.0, 4.0]]), ms.asarray([2.0, 2.0])).tolist()
        [1.0, 0.5]

    Raises InvalidArgumentError for matrices that are not square, and sizes that do not match.
    """
    return ops.solve(x1, x2)


def inv(x, /):
    """The inverse matrices. Singular matrices give infinities or NaN.

    [..., n, n] to the same shape.

        >>> ms.linalg.inv(ms.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]

    Raises InvalidArgumentError for matrices that are not square.
    """
    return ops.inv(x)


def _square(x, name):
    x = _matrices(x, name)
    if x.shape[-2] != x.shape[-1]:
        raise ValueError(f"[{name}] needs square matrices, not the shape {x.shape}")
    return x


def cholesky(x, /, *, upper=False):
    """The Cholesky factors of symmetric (Hermitian) positive definite matrices: lower triangular, or upper.

    [..., n, n] to the same shape: x = L @ L^H, or with `upper` U^H @ U. A matrix that is not positive
    definite gives NaN.

        >>> ms.linalg.cholesky(ms.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
        [[2.0, 0.0], [1.0, 2.0]]

    Raises InvalidArgumentError for matrices that are not square.
    """
    return ops.cholesky(x, upper)


def cross(x1, x2, /, *, axis=-1):
    """The cross product of vectors of 3 elements along a dimension; the others broadcast.

        >>> ms.linalg.cross(ms.asarray([1, 0, 0]), ms.asarray([0, 1, 0])).tolist()
        [0, 0, 1]

    Raises ValueError if the dimension has another size than 3.
    """
    x1, x2 = as_tensor(x1), as_tensor(x2)
    for x in (x1, x2):
        if not -x.ndim <= axis < x.ndim or x.shape[axis] != 3:
            raise ValueError(f"cross needs 3 elements along dimension {axis}, not the shapes {x1.shape} and {x2.shape}")
    return ops.cross(x1, x2, axis)


def det(x, /):
    """The determinants.

    [..., n, n] to [...].

        >>> round(ms.linalg.det(ms.asarray([[1.0, 2.0], [3.0, 5.0]])).item(), 5)
        -1.0

    Raises ValueError for matrices that are not square.
    """
    return ops.det(_square(x, "det"))


def slogdet(x, /):
    """The determinants as sign and logarithm of the absolute value, which do not overflow.

    [..., n, n] to (sign [...], logabsdet [...]). The sign of a singular matrix is 0 and the logarithm -infinity.

        >>> sign, logarithm = ms.linalg.slogdet(ms.asarray([[0.0, 1.0], [1.0, 0.0]]))
        >>> sign.item(), logarithm.item()
        (-1.0, 0.0)

    Raises ValueError for matrices that are not square.
    """
    return SlogdetResult(*ops.slogdet(_square(x, "slogdet")))


def diagonal(x, /, *, offset=0):
    """The elements [i, i + offset] of each matrix, along the last dimension.

    [..., m, n] to [..., min(m, n)] for offset 0.

        >>> ms.linalg.diagonal(ms.asarray([[1, 2], [3, 4]])).tolist()
        [1, 4]
    """
    return ops.diagonal(x, offset)


def trace(x, /, *, offset=0, dtype=None):
    """The sum of the diagonal. Narrow integers are summed in int32 or uint32 by default.

    [..., m, n] to [...].

        >>> ms.linalg.trace(ms.asarray([[1, 2], [3, 4]])).item()
        5
    """
    if dtype is None:
        return ops.trace(x, offset)
    return ops.astype(ops.trace(ops.astype(x, dtype), offset), dtype)


def eigh(x, /):
    """The eigenvalues, ascending, and eigenvectors of symmetric or Hermitian matrices.

    [..., n, n] to (eigenvalues [..., n], eigenvectors [..., n, n]); column i is the eigenvector of eigenvalue i.

        >>> values, vectors = ms.linalg.eigh(ms.asarray([[2.0, 0.0], [0.0, 1.0]]))
        >>> values.tolist(), abs(vectors).tolist()
        ([1.0, 2.0], [[0.0, 1.0], [1.0, 0.0]])

    Raises ValueError for matrices that are not square.
    """
    return EighResult(*ops.eigh(_square(x, "eigh")))


def eigvalsh(x, /):
    """The eigenvalues of symmetric or Hermitian matrices, ascending.

    [..., n, n] to [..., n].

        >>> ms.linalg.eigvalsh(ms.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
        [1.0, 2.0]
    """
    return ops.eigvalsh(_square(x, "eigvalsh"))


def eig(x, /):
    """The complex eigenvalues, in no order, and eigenvectors of norm 1 of square matrices.

    [..., n, n] to (eigenvalues [..., n], eigenvectors [..., n, n]).

        >>> ms.linalg.eig(ms.asarray([[2.0, 0.0], [0.0, 2.0]])).eigenvalues.tolist()
        [(2+0j), (2+0j)]

    Raises ValueError for matrices that are not square.
    """
    return EigResult(*ops.eig(_square(x, "eig")))


def eigvals(x, /):
    """The complex eigenvalues of square matrices, in no order."""
    return ops.eigvals(_square(x, "eigvals"))


def matrix_power(x, n, /):
    """The n-th power of square matrices; for negative n of the inverses, for 0 the identity.

        >>> ms.linalg.matrix_power(ms.asarray([[1.0, 1.0], [0.0, 1.0]]), 3).tolist()
        [[1.0, 3.0], [0.0, 1.0]]

    Raises an error for matrices that are not square.
    """
    return ops.matrix_power(x, n)


_NORMS = {"fro": "frobenius", 1: "largest_column_sum", -1: "smallest_column_sum", math.inf: "largest_row_sum",
          -math.inf: "smallest_row_sum", 2: "spectral", -2: "smallest_singular", "nuc": "nuclear"}


def _norm_of(order, name):
    if order not in _NORMS:
        raise ValueError(f"unknown {name}={order!r}: use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    return _NORMS[order]


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norms of matrices: `"fro"`, `"nuc"` (the sum of the singular values), 1, -1 (column sums), inf, -inf (row
    sums), 2, -2 (the largest and the smallest singular value).

    [..., m, n] to [...], or with `keepdims` [..., 1, 1].

        >>> ms.linalg.matrix_norm(ms.asarray([[3.0, 0.0], [0.0, 4.0]])).item()
        5.0

    Raises ValueError for another `ord`.
    """
    return ops.matrix_norm(_matrices(x, "matrix_norm"), keepdims, _norm_of(ord, "ord of matrix_norm"))


def cond(x, /, p=2):
    """The condition numbers: the norm of x times that of its inverse, for the orders of matrix_norm().

    The condition number of a singular matrix is infinite. The orders 2 and -2 take matrices that are not square.

        >>> ms.linalg.cond(ms.asarray([[2.0, 0.0], [0.0, 4.0]]), "fro").item()
        2.5

    Raises ValueError for another `p`.
    """
    return ops.cond(_matrices(x, "cond"), _norm_of(2 if p is None else p, "p of cond"))


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The norms of vectors along dimensions, by default of all elements: the sum of abs(x)**ord, to the power 1 / ord.

    For infinity the largest magnitude, for -infinity the smallest, for 0 the number of nonzero elements.

    >>> ms.linalg.vector_norm(ms.asarray([3.0, 4.0])).item()
    5.0
    """
    x = as_tensor(x)
    largest = float(numpy.finfo(_real(x)).max) if x.dtype.kind in "fc" else math.inf
    if abs(ord) > largest:
        ord = math.copysign(math.inf, ord)
    if 0 < abs(ord) < 1 / largest:  # 1 / ord is infinite in the dtype
        powers = ops.pow(ops.abs(x), math.copysign(0.0, ord))
        return ops.pow(ops.sum(powers, axis, keepdims), math.copysign(math.inf, ord))
    return ops.vector_norm(x, axis, keepdims, ord)


def _relative(x, rtol):
    """rtol as the function of C++ takes it, and as a tensor next to the batch; one of them is None."""
    if rtol is None or not isinstance(rtol, Tensor):
        return (None if rtol is None else float(rtol)), None
    return None, ops.astype(rtol, _real(x))


def matrix_rank(x, /, *, rtol=None):
    """The number of singular values above rtol times the largest.

    By default rtol is the larger size times the machine epsilon.

    [..., m, n] to [...], int32.

        >>> ms.linalg.matrix_rank(ms.asarray([[1.0, 1.0], [1.0, 1.0]])).item()
        1
    """
    x = _matrices(x, "matrix_rank")
    number, each = _relative(x, rtol)
    if each is None:
        return ops.matrix_rank(x, number)
    values = ops.svdvals(x)
    if not min(x.shape[-2:]):
        return ops.zeros(x.shape[:-2], "int32")
    least = ops.expand_dims(each, -1) * ops.max(values, -1, True)
    return ops.sum(ops.astype(values > least, "int32"), -1)


def pinv(x, /, *, rtol=None, hermitian=False):
    """The pseudo-inverses. Singular values up to rtol times the largest count as zero.

    By default rtol is the larger size times the machine epsilon. `hermitian` matrices are decomposed by eigh().

    [..., m, n] to [..., n, m].

        >>> ms.linalg.pinv(ms.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.0]]
    """
    x = _matrices(x, "pinv")
    number, each = _relative(x, rtol)
    if each is None:
        return ops.pinv(x, number, hermitian)
    # One tolerance for each matrix: what counts as zero is removed first.
    left, values, right = ops.svd(x)
    if not min(x.shape[-2:]):
        return ops.pinv(x, None, hermitian)
    kept = values > ops.expand_dims(each, -1) * ops.max(values, -1, True)
    inverse = ops.where(kept, 1 / ops.where(kept, values, ops.ones_like(values)), ops.zeros_like(values))
    left, right = (ops.matrix_transpose(ops.conj(each) if x.dtype in COMPLEX else each) for each in (left, right))
    return ops.matmul(right * ops.expand_dims(ops.astype(inverse, x.dtype), -2), left)


def qr(x, /, *, mode="reduced"):
    """The QR factors: `"reduced"` with min(m, n) orthonormal columns, or `"complete"` with m.

    [..., m, n] to (Q [..., m, k], R [..., k, n]), with k = min(m, n), or m for `"complete"`.

        >>> q, r = ms.linalg.qr(ms.asarray([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]]))
        >>> q.shape, r.shape
        ((3, 2), (2, 2))

    Raises ValueError for another mode.
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"unknown mode {mode!r} of qr: use 'reduced' or 'complete'")
    return QRResult(*ops.qr(_matrices(x, "qr"), mode == "complete"))


def svd(x, /, *, full_matrices=True):
    """The singular value decomposition x = U diag(S) Vh, with S descending.

    [..., m, n] to (U [..., m, m], S [..., k], Vh [..., n, n]), with k = min(m, n); without `full_matrices`, U is
    [..., m, k] and Vh [..., k, n].

        >>> ms.linalg.svd(ms.asarray([[3.0, 0.0], [0.0, 4.0]])).S.tolist()
        [4.0, 3.0]
    """
    return SVDResult(*ops.svd(_matrices(x, "svd"), full_matrices))


def svdvals(x, /):
    """The singular values, descending.

    [..., m, n] to [..., min(m, n)].

        >>> ms.linalg.svdvals(ms.asarray([[3.0, 0.0], [0.0, 4.0]])).tolist()
        [4.0, 3.0]
    """
    return ops.svdvals(_matrices(x, "svdvals"))
