"""Linear algebra: the `linalg` extension of the array API standard.

Matrices are the last two dimensions; those before them are batches. eig, pinv, matrix_rank, svd and svdvals, and
decompositions of complex matrices, are computed by NumPy on the host, in jit by a callback, and have no derivative.
"""

import math
from collections import namedtuple

import numpy

from . import _distributed as distributed
from ._array_api.common import COMPLEX, DEFAULT_FLOAT, FLOATS, Tensor, ops
from ._array_api.creation import as_tensor
from ._array_api.data_types import result_type
from ._array_api.host import on_host
from ._array_api.linear_algebra import EighResult, QRResult, matmul, matrix_transpose, tensordot, vecdot
from ._array_api.manipulation import broadcast_shapes
from ._names import shown as _shown

__all__ = ["cholesky", "cross", "det", "diagonal", "distributed", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
           "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd",
           "svdvals",
           "tensordot", "trace", "triangular_solve", "vecdot", "vector_norm"]
__getattr__, __dir__ = _shown(__name__)

EigResult = namedtuple("EigResult", ["eigenvalues", "eigenvectors"])
SlogdetResult = namedtuple("SlogdetResult", ["sign", "logabsdet"])
SVDResult = namedtuple("SVDResult", ["U", "S", "Vh"])

outer, triangular_solve = ops.outer, ops.triangular_solve


def _real(x):
    """The dtype of absolute values."""
    return numpy.zeros(0, x.dtype).real.dtype


def _complex(x):
    """The dtype of eigenvalues."""
    return numpy.result_type(x.dtype, numpy.complex64)


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
    x1, x2 = as_tensor(x1), as_tensor(x2)
    if x1.size and x2.size:
        return ops.solve(x1, x2)
    if x1.ndim < 2 or x1.shape[-2] != x1.shape[-1] or x1.shape[-1] != x2.shape[-1 if x2.ndim == 1 else -2]:
        raise ValueError(f"[solve] the shapes {x1.shape} and {x2.shape} do not match")
    dtype = (x1[..., :0] / 1).dtype if x1.dtype == x2.dtype else result_type(x1, x2)
    if x2.ndim == 1:
        return ops.zeros(x1.shape[:-1], dtype)
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return ops.zeros((*batch, *x2.shape[-2:]), dtype)


def inv(x, /):
    """The inverse matrices. Singular matrices give infinities or NaN.

    [..., n, n] to the same shape.

        >>> ms.linalg.inv(ms.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]

    Raises InvalidArgumentError for matrices that are not square.
    """
    x = as_tensor(x)
    return ops.inv(x) if x.size else _square(x, "inv")[...]


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
    x = as_tensor(x)
    return ops.cholesky(x, upper) if x.size else _square(x, "cholesky")[...]


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

        >>> ms.linalg.det(ms.asarray([[1.0, 2.0], [3.0, 5.0]])).item()
        -1.0

    Raises InvalidArgumentError for matrices that are not square.
    """
    x = _matrices(x, "det")
    if x.dtype in COMPLEX:
        return on_host(lambda a: (numpy.linalg.det(a),), [(x.shape[:-2], x.dtype)], x)[0]
    return ops.det(x) if x.size else ops.ones(_square(x, "det").shape[:-2], x.dtype)


def slogdet(x, /):
    """The determinants as sign and logarithm of the absolute value, which do not overflow.

    [..., n, n] to (sign [...], logabsdet [...]). The sign of a singular matrix is 0 and the logarithm -infinity.

        >>> sign, logarithm = ms.linalg.slogdet(ms.asarray([[0.0, 1.0], [1.0, 0.0]]))
        >>> sign.item(), logarithm.item()
        (-1.0, 0.0)

    Raises InvalidArgumentError for matrices that are not square.
    """
    x = _matrices(x, "slogdet")
    if x.dtype in COMPLEX:
        batch = x.shape[:-2]
        return SlogdetResult(*on_host(numpy.linalg.slogdet, [(batch, x.dtype), (batch, _real(x))], x))
    if not x.size:
        batch = _square(x, "slogdet").shape[:-2]
        return SlogdetResult(ops.ones(batch, x.dtype), ops.zeros(batch, x.dtype))
    return SlogdetResult(*ops.slogdet(x))


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

    Raises an error for matrices that are not square.
    """
    x = _matrices(x, "eigh")
    if x.dtype in COMPLEX:
        return EighResult(*on_host(numpy.linalg.eigh, [(x.shape[:-1], _real(x)), (x.shape, x.dtype)], x))
    if not x.size:
        return EighResult(ops.zeros(_square(x, "eigh").shape[:-1], x.dtype), x[...])
    return EighResult(*ops.eigh(x))


def eigvalsh(x, /):
    """The eigenvalues of symmetric or Hermitian matrices, ascending.

    [..., n, n] to [..., n].

        >>> ms.linalg.eigvalsh(ms.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
        [1.0, 2.0]
    """
    x = _matrices(x, "eigvalsh")
    if x.dtype in COMPLEX:
        return on_host(lambda a: (numpy.linalg.eigvalsh(a),), [(x.shape[:-1], _real(x))], x)[0]
    return ops.eigvalsh(x) if x.size else ops.zeros(_square(x, "eigvalsh").shape[:-1], x.dtype)


def eig(x, /):
    """The complex eigenvalues and eigenvectors of square matrices. Computed by NumPy on the host.

    [..., n, n] to (eigenvalues [..., n], eigenvectors [..., n, n]).

        >>> ms.linalg.eig(ms.asarray([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.tolist()
        [1j, -1j]

    Raises ValueError for matrices that are not square.
    """
    x = _square(x, "eig")
    return EigResult(*on_host(numpy.linalg.eig, [(x.shape[:-1], _complex(x)), (x.shape, _complex(x))], x))


def eigvals(x, /):
    """The complex eigenvalues of square matrices. Computed by NumPy on the host."""
    x = _square(x, "eigvals")
    return on_host(lambda a: (numpy.linalg.eigvals(a),), [(x.shape[:-1], _complex(x))], x)[0]


def matrix_power(x, n, /):
    """The n-th power of square matrices; for negative n of the inverses, for 0 the identity.

        >>> ms.linalg.matrix_power(ms.asarray([[1.0, 1.0], [0.0, 1.0]]), 3).tolist()
        [[1.0, 3.0], [0.0, 1.0]]

    Raises an error for matrices that are not square.
    """
    x = as_tensor(x)
    return ops.matrix_power(x, n) if x.size else _square(x, "matrix_power")[...]


_NORMS = {"fro": "frobenius", 1: "largest_column_sum", -1: "smallest_column_sum", math.inf: "largest_row_sum",
          -math.inf: "smallest_row_sum", 2: "spectral"}


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norms of matrices: `"fro"`, `"nuc"` (the sum of the singular values), 1, -1 (column sums), inf, -inf (row
    sums), 2, -2 (the largest and the smallest singular value).

    [..., m, n] to [...], or with `keepdims` [..., 1, 1].

        >>> ms.linalg.matrix_norm(ms.asarray([[3.0, 0.0], [0.0, 4.0]])).item()
        5.0

    Raises ValueError for another `ord`.
    """
    x = _matrices(x, "matrix_norm")
    if ord in _NORMS and not (ord == 2 and x.dtype in COMPLEX):
        return ops.matrix_norm(x, keepdims, _NORMS[ord])
    if ord == "nuc":
        norm = ops.sum(svdvals(x), -1)
    elif ord == 2:
        norm = svdvals(x)[..., 0]
    elif ord == -2:
        norm = svdvals(x)[..., -1]
    else:
        raise ValueError(f"unknown ord={ord!r} of matrix_norm: use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    return ops.reshape(norm, (*norm.shape, 1, 1)) if keepdims else norm


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


def matrix_rank(x, /, *, rtol=None):
    """The number of singular values above rtol times the largest. Computed by NumPy on the host.

    By default rtol is the larger size times the machine epsilon.

    [..., m, n] to [...], int32.

        >>> ms.linalg.matrix_rank(ms.asarray([[1.0, 1.0], [1.0, 1.0]])).item()
        1
    """
    x = _matrices(x, "matrix_rank")

    def ranks(a, *given):
        values = numpy.linalg.svd(a, compute_uv=False)
        tolerance = given[0] if given else _default_tolerance(a) if rtol is None else rtol
        largest = values.max(axis=-1, initial=0)
        return ((values > (tolerance * largest)[..., None]).sum(axis=-1),)

    return on_host(ranks, [(x.shape[:-2], "int32")], x, *([rtol] if isinstance(rtol, Tensor) else []))[0]


def _default_tolerance(array):
    return max(array.shape[-2:]) * numpy.finfo(array.dtype).eps


def pinv(x, /, *, rtol=None):
    """The pseudo-inverses. Singular values up to rtol times the largest count as zero. Computed by NumPy on the host.

    By default rtol is the larger size times the machine epsilon.

    [..., m, n] to [..., n, m].

        >>> ms.linalg.pinv(ms.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.0]]
    """
    x = _matrices(x, "pinv")

    def inverses(a, *given):
        tolerance = given[0] if given else _default_tolerance(a) if rtol is None else rtol
        return (numpy.linalg.pinv(a, tolerance),)

    types = [((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)]
    return on_host(inverses, types, x, *([rtol] if isinstance(rtol, Tensor) else []))[0]


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
    x = _matrices(x, "qr")
    *batch, rows, columns = x.shape
    inner = rows if mode == "complete" else min(rows, columns)
    types = [((*batch, rows, inner), x.dtype), ((*batch, inner, columns), x.dtype)]
    if x.dtype in COMPLEX or inner > columns:
        return QRResult(*on_host(lambda a: numpy.linalg.qr(a, mode), types, x))
    return QRResult(*ops.qr(x)) if x.size else QRResult(*(ops.zeros(*each) for each in types))


def svd(x, /, *, full_matrices=True):
    """The singular value decomposition x = U diag(S) Vh, with S descending. Computed by NumPy on the host.

    [..., m, n] to (U [..., m, m], S [..., k], Vh [..., n, n]), with k = min(m, n); without `full_matrices`, U is
    [..., m, k] and Vh [..., k, n].

        >>> ms.linalg.svd(ms.asarray([[3.0, 0.0], [0.0, 4.0]])).S.tolist()
        [4.0, 3.0]
    """
    x = _matrices(x, "svd")
    *batch, rows, columns = x.shape
    inner = min(rows, columns)
    types = [((*batch, rows, rows if full_matrices else inner), x.dtype), ((*batch, inner), _real(x)),
             ((*batch, columns if full_matrices else inner, columns), x.dtype)]
    return SVDResult(*on_host(lambda a: numpy.linalg.svd(a, full_matrices), types, x))


def svdvals(x, /):
    """The singular values, descending. Computed by NumPy on the host.

    [..., m, n] to [..., min(m, n)].

        >>> ms.linalg.svdvals(ms.asarray([[3.0, 0.0], [0.0, 4.0]])).tolist()
        [4.0, 3.0]
    """
    x = _matrices(x, "svdvals")
    types = [((*x.shape[:-2], min(x.shape[-2:])), _real(x))]
    return on_host(lambda a: (numpy.linalg.svd(a, compute_uv=False),), types, x)[0]
