"""Factorizations of matrices, and operations that use them. All take batches of matrices [..., m, n]."""

import torch

import meshard as ms

from .._dtypes import to_meshard, to_torch
from .._table import lowers, results_of
from ._helpers import array, as_dtype, cast


def _is_complex(x):
    return to_torch(x.dtype).is_complex


def _adjoint(x):
    x = ms.matrix_transpose(x)
    return ms.conj(x) if _is_complex(x) else x


def _real_dtype(x):
    dtype = to_torch(x.dtype)
    return dtype.to_real() if dtype.is_complex else dtype


def _eye(n, dtype):
    return ms.eye(n, dtype=dtype)


def _batched(a, b):
    """Both matrices with the same leading dimensions."""
    leading = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return ms.broadcast_to(a, (*leading, *a.shape[-2:])), ms.broadcast_to(b, (*leading, *b.shape[-2:]))


def _rows(x, order):
    """The rows of matrices in an order [..., m]."""
    if 0 in x.shape:
        return x
    return ms.take_along_axis(x, ms.broadcast_to(ms.expand_dims(order, axis=-1), x.shape), axis=-2)


def _triangular(a, b, *, lower, unit=False, transpose="none", left=True):
    a, b = _batched(a, b)
    if 0 in b.shape:
        return ms.zeros_like(b)
    return ms.linalg.triangular_solve(a, b, left_side=left, lower=lower, unit_diagonal=unit, transpose=transpose)


# LU factors


def _lu(a):
    """LU factors in one matrix, pivots from 1 on, and the number of the first pivot that is 0 (0: none)."""
    *leading, m, n = a.shape
    count = min(m, n)
    if 0 in a.shape:
        return a, ms.ones((*leading, count), dtype=ms.int32), ms.zeros(tuple(leading), dtype=ms.int32)
    a, pivots = ms.linalg.lu_factor(a)
    diagonal = ms.linalg.diagonal(a)
    singular = ms.equal(diagonal, ms.zeros_like(diagonal))
    first = ms.argmax(cast(singular, torch.int32), axis=-1)
    info = ms.where(ms.any(singular, axis=-1), first + 1, ms.zeros_like(first))
    return a, pivots + 1, ms.astype(info, ms.int32)


def _permutation(pivots, m):
    """The order of rows [..., m] after the exchanges of these pivots."""
    if 0 in pivots.shape:
        return ms.broadcast_to(ms.arange(m, dtype=ms.int32), (*pivots.shape[:-1], m))
    return ms.linalg.lu_pivots_to_permutation(pivots - 1, m)


def _permutation_matrix(pivots, m, dtype):
    order = _permutation(pivots, m)
    return ms.astype(ms.equal(ms.arange(m, dtype=ms.int32)[:, None], order[..., None, :]), dtype)


@lowers("aten.linalg_lu_factor_ex")
def lu_factor_ex(a, pivot=True, check_errors=False):
    _require_pivots(pivot)
    return _lu(a)


def _require_pivots(pivot):
    if not pivot:
        raise NotImplementedError("[torch] pivot=False of LU factors is not supported: use pivot=True")


def _lower_and_upper(lu):
    m, n = lu.shape[-2:]
    count = min(m, n)
    lower = ms.tril(lu[..., :, :count], k=-1) + ms.eye(m, count, dtype=lu.dtype)
    return lower, ms.triu(lu[..., :count, :])


@lowers("aten.linalg_lu")
def linalg_lu(a, pivot=True):
    _require_pivots(pivot)
    lu, pivots, _ = _lu(a)
    return (_permutation_matrix(pivots, a.shape[-2], a.dtype), *_lower_and_upper(lu))


@lowers("aten.lu_unpack")
def lu_unpack(lu, pivots, unpack_data=True, unpack_pivots=True):
    empty = ms.zeros((0,), dtype=lu.dtype)
    p = _permutation_matrix(pivots, lu.shape[-2], lu.dtype) if unpack_pivots else empty
    return (p, *(_lower_and_upper(lu) if unpack_data else (empty, empty)))


def _lu_solve(lu, pivots, b, adjoint):
    lu, b = _batched(lu, b)
    order = ms.broadcast_to(_permutation(pivots, lu.shape[-1]), lu.shape[:-1])
    if not adjoint:
        b = _triangular(lu, _rows(b, order), lower=True, unit=True)
        return _triangular(lu, b, lower=False)
    b = _triangular(lu, b, lower=False, transpose="adjoint" if _is_complex(lu) else "transpose")
    b = _triangular(lu, b, lower=True, unit=True, transpose="adjoint" if _is_complex(lu) else "transpose")
    return _rows(b, ms.argsort(order, axis=-1))


@lowers("aten.linalg_lu_solve")
def linalg_lu_solve(lu, pivots, b, left=True, adjoint=False):
    if left:
        return _lu_solve(lu, pivots, b, adjoint)
    return _adjoint(_lu_solve(lu, pivots, _adjoint(b), not adjoint))


@lowers("aten._linalg_solve_ex")
def linalg_solve_ex(a, b, left=True, check_errors=False):
    lu, pivots, info = _lu(a)
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    made = linalg_lu_solve(lu, pivots, ms.expand_dims(b, axis=-1) if vector else b, left)
    return made[..., 0] if vector else made, lu, pivots, info


@lowers("aten.linalg_inv_ex")
def linalg_inv_ex(a, check_errors=False):
    lu, pivots, info = _lu(a)
    made = _lu_solve(lu, pivots, ms.broadcast_to(_eye(a.shape[-1], a.dtype), a.shape), False)
    return made, info


def _factors_transpose(node):
    """Whether the factors of a determinant, and so of its derivative, are computed from the transpose."""
    value = None if node is None else node.args[0].meta.get("val")
    return value is None or (value.is_contiguous() and not value.is_complex())


def _sign_of_pivots(pivots, dtype):
    moved = ms.not_equal(pivots, ms.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype))
    odd = ms.remainder(ms.sum(cast(moved, torch.int32), axis=-1), array(2, dtype=ms.int32))
    return ms.astype(1 - 2 * odd, dtype)


@lowers("aten._linalg_det", with_node=True)
def linalg_det(a, node=None):
    lu, pivots, _ = _lu(ms.matrix_transpose(a) if _factors_transpose(node) else a)
    return ms.prod(ms.linalg.diagonal(lu), axis=-1) * _sign_of_pivots(pivots, a.dtype), lu, pivots


@lowers("aten._linalg_slogdet", with_node=True)
def linalg_slogdet(a, node=None):
    lu, pivots, _ = _lu(ms.matrix_transpose(a) if _factors_transpose(node) else a)
    diagonal = ms.linalg.diagonal(lu)
    sign = ms.prod(ms.sign(diagonal), axis=-1) * _sign_of_pivots(pivots, a.dtype)
    return sign, ms.sum(ms.log(ms.abs(diagonal)), axis=-1), lu, pivots


@lowers("aten._linalg_check_errors")
def linalg_check_errors(info, api_name, is_matrix):
    # A program cannot raise PyTorch's error; results of singular matrices are infinite or NaN.
    return None


# Triangular and positive definite matrices


@lowers("aten.linalg_solve_triangular")
def linalg_solve_triangular(a, b, upper, left=True, unitriangular=False):
    return _triangular(a, b, lower=not upper, unit=unitriangular, left=left)


@lowers("aten.triangular_solve")
def triangular_solve(b, a, upper=True, transpose=False, unitriangular=False):
    kind = "transpose" if transpose else "none"
    a, b = _batched(a, b)
    return _triangular(a, b, lower=not upper, unit=unitriangular, transpose=kind), a


@lowers("aten.linalg_cholesky_ex")
def linalg_cholesky_ex(a, upper=False, check_errors=False):
    leading, n = a.shape[:-2], a.shape[-1]
    if 0 in a.shape:
        return a, ms.zeros(leading, dtype=ms.int32)
    made = ms.linalg.cholesky(_adjoint(a) if upper else a)
    diagonal = ms.linalg.diagonal(made)
    valid = ms.real(diagonal) if _is_complex(a) else diagonal
    wrong = ms.logical_not(ms.isfinite(valid))
    first = ms.argmax(cast(wrong, torch.int32), axis=-1)
    info = ms.where(ms.any(wrong, axis=-1), first + 1, ms.zeros_like(first))
    return _adjoint(made) if upper else made, ms.astype(info, ms.int32)


@lowers("aten.cholesky_solve")
def cholesky_solve(b, factor, upper=False):
    lower = _adjoint(factor) if upper else factor
    made = _triangular(lower, b, lower=True)
    return _triangular(lower, made, lower=True, transpose="adjoint" if _is_complex(b) else "transpose")


@lowers("aten.cholesky_inverse")
def cholesky_inverse(factor, upper=False):
    return cholesky_solve(ms.broadcast_to(_eye(factor.shape[-1], factor.dtype), factor.shape), factor, upper)


# Householder's reflections


def _reflected(x, v, tau):
    """(1 - tau v v^H) x for matrices x [..., m, n], v [..., m] and tau [...]."""
    conjugate = ms.conj(v) if _is_complex(v) else v
    product = ms.sum(conjugate[..., :, None] * x, axis=-2, keepdims=True)
    return x - tau[..., None, None] * v[..., :, None] * product


def _vector_of(a, k):
    """The vector of the reflection k [..., m]: 0 before place k, 1 there, and the elements below the diagonal."""
    m, n = a.shape[-2:]
    rows, columns = ms.arange(m, dtype=ms.int32), ms.arange(n, dtype=ms.int32)
    column = ms.sum(ms.where(ms.equal(columns, k), a, ms.zeros_like(a)), axis=-1)
    column = ms.where(rows > k, column, ms.zeros_like(column))
    return ms.where(ms.equal(rows, k), ms.ones_like(column), column)


def _element_of(tau, k):
    places = ms.arange(tau.shape[-1], dtype=ms.int32)
    return ms.sum(ms.where(ms.equal(places, k), tau, ms.zeros_like(tau)), axis=-1)


@lowers("aten.geqrf")
def geqrf(a):
    """R above the diagonal, the vectors of the reflections below, and their factors, as LAPACK's geqrf."""
    *leading, m, n = a.shape
    count = min(m, n)
    tau = ms.zeros((*leading, count), dtype=a.dtype)
    if 0 in a.shape:
        return a, tau
    rows, columns = ms.arange(m, dtype=ms.int32), ms.arange(n, dtype=ms.int32)
    is_complex = _is_complex(a)

    def step(k, carry):
        a, tau = carry
        k = ms.astype(k, ms.int32)
        column = ms.sum(ms.where(ms.equal(columns, k), a, ms.zeros_like(a)), axis=-1)
        alpha = ms.sum(ms.where(ms.equal(rows, k), column, ms.zeros_like(column)), axis=-1)
        below = ms.where(rows > k, column, ms.zeros_like(column))
        size = ms.abs(below)
        norm = ms.sqrt(ms.sum(size * size, axis=-1))
        real = ms.real(alpha) if is_complex else alpha
        trivial = ms.equal(norm, ms.zeros_like(norm))
        if is_complex:
            imag = ms.imag(alpha)
            trivial = ms.logical_and(trivial, ms.equal(imag, ms.zeros_like(imag)))
        total = ms.hypot(ms.abs(alpha), norm)
        beta = ms.where(real >= 0, -total, total)
        safe = ms.where(trivial, ms.ones_like(beta), beta)
        wide = ms.astype(safe, a.dtype)
        factor = (wide - alpha) / wide
        factor = ms.where(trivial, ms.zeros_like(factor), factor)
        difference = alpha - wide
        difference = ms.where(trivial, ms.ones_like(difference), difference)
        v = ms.where(ms.equal(rows, k), ms.ones_like(below), below / difference[..., None])
        changed = _reflected(a, v, ms.conj(factor) if is_complex else factor)
        # The column itself: beta on the diagonal, the vector below.
        diagonal = ms.where(trivial, alpha, ms.astype(beta, a.dtype))[..., None]
        own = ms.where(rows > k, ms.where(trivial[..., None], below, v),
                       ms.where(ms.equal(rows, k), diagonal, column))
        a = ms.where(ms.equal(columns, k), own[..., :, None],
                     ms.where(ms.logical_and(columns > k, (rows >= k)[:, None]), changed, a))
        places = ms.arange(count, dtype=ms.int32)
        return a, ms.where(ms.equal(places, k), factor[..., None], tau)

    return ms.fori_loop(0, count, step, (a, tau))


def _reflections(x, a, tau, adjoint=False, forward=False):
    """Q x (Q^H x if adjoint) for the product Q of the reflections in a and tau."""
    count = tau.shape[-1]

    def step(i, x):
        k = ms.astype(i, ms.int32) if forward else count - 1 - ms.astype(i, ms.int32)
        factor = _element_of(tau, k)
        return _reflected(x, _vector_of(a, k), ms.conj(factor) if adjoint and _is_complex(a) else factor)

    return ms.fori_loop(0, count, step, x) if count and 0 not in x.shape else x


@lowers("aten.linalg_householder_product")
def linalg_householder_product(a, tau):
    *leading, m, n = a.shape
    return _reflections(ms.broadcast_to(ms.eye(m, n, dtype=a.dtype), a.shape), a, tau)


@lowers("aten.ormqr")
def ormqr(a, tau, x, left=True, transpose=False):
    if left:
        return _reflections(x, a, tau, adjoint=transpose, forward=transpose)
    # x Q = (Q^H x^H)^H
    return _adjoint(_reflections(_adjoint(x), a, tau, adjoint=not transpose, forward=not transpose))


@lowers("aten.linalg_qr")
def linalg_qr(a, mode="reduced"):
    q, r = ms.linalg.qr(a, mode="complete" if mode == "complete" else "reduced")
    return ms.zeros((0,), dtype=a.dtype) if mode == "r" else q, r


# Eigenvalues and singular values


@lowers("aten._linalg_eigh")
def linalg_eigh(a, UPLO="L", compute_v=True):
    n = a.shape[-1]
    real = to_meshard(_real_dtype(a))
    if 0 in a.shape:
        return ms.zeros(a.shape[:-1], dtype=real), a if compute_v else ms.zeros((0,), dtype=a.dtype)
    half = ms.tril(a, k=-1) if UPLO.upper() == "L" else _adjoint(ms.triu(a, k=1))
    diagonal = ms.where(_eye(n, ms.bool), ms.astype(ms.real(a), a.dtype) if _is_complex(a) else a, ms.zeros_like(a))
    values, vectors = ms.linalg.eigh(half + _adjoint(half) + diagonal)
    return ms.astype(values, real), vectors if compute_v else ms.zeros((0,), dtype=a.dtype)


@lowers("aten.linalg_eig")
def linalg_eig(a):
    complex_dtype = to_meshard(to_torch(a.dtype).to_complex())
    values, vectors = ms.linalg.eig(a)
    return ms.astype(values, complex_dtype), ms.astype(vectors, complex_dtype)


@lowers("aten.linalg_eigvals", "aten._linalg_eigvals")
def linalg_eigvals(a):
    return linalg_eig(a)[0]


@lowers("aten._linalg_svd")
def linalg_svd(a, full_matrices=False, compute_uv=True, driver=None):
    *leading, m, n = a.shape
    real = to_meshard(_real_dtype(a))
    if 0 in a.shape:
        rows, columns = (m, n) if full_matrices else (min(m, n), min(m, n))
        left = ms.broadcast_to(ms.eye(m, rows, dtype=a.dtype), (*leading, m, rows))
        right = ms.broadcast_to(ms.eye(columns, n, dtype=a.dtype), (*leading, columns, n))
        made = left, ms.zeros((*leading, min(m, n)), dtype=real), right
    else:
        made = ms.linalg.svd(a, full_matrices=full_matrices)
    if compute_uv:
        return tuple(made)
    empty = ms.zeros((0,), dtype=a.dtype)
    return empty, made[1], empty


@lowers("aten.linalg_pinv.atol_rtol_tensor")
def linalg_pinv(a, atol=None, rtol=None, hermitian=False):
    *leading, m, n = a.shape
    if 0 in a.shape:
        return ms.zeros((*leading, n, m), dtype=a.dtype)
    real = _real_dtype(a)
    if hermitian:
        values, right = linalg_eigh(a)
        left, size = right, ms.abs(values)
    else:
        left, values, right = linalg_svd(a)
        right, size = _adjoint(right), values
    largest = ms.max(size, axis=-1, keepdims=True)
    absolute = ms.zeros((), dtype=values.dtype) if atol is None else cast(atol, real)
    default = as_dtype(torch.finfo(real).eps * max(m, n), real)
    if rtol is None:
        relative = ms.where(absolute > 0, ms.zeros_like(default), default) if atol is not None else default
    else:
        relative = cast(rtol, real)
    if relative.ndim:
        relative = ms.expand_dims(relative, axis=-1)
    if absolute.ndim:
        absolute = ms.expand_dims(absolute, axis=-1)
    kept = size > ms.maximum(absolute, relative * largest)
    inverse = ms.where(kept, 1 / ms.where(kept, values, ms.ones_like(values)), ms.zeros_like(values))
    return ms.matmul(right * ms.astype(inverse, a.dtype)[..., None, :], _adjoint(left))


@results_of("aten.linalg_lstsq")
def _lstsq_results(a, b, rcond=None, *, driver=None):
    *leading, rows, columns = a.shape
    is_vector = b.ndim == 1 or a.ndim - 1 == b.ndim and b.shape == a.shape[:-1]
    leading = torch.broadcast_shapes(tuple(leading), b.shape[:-1] if is_vector else b.shape[:-2])
    right = () if is_vector else (b.shape[-1],)
    if driver in ("gelsd", "gelss") and rows > columns:
        raise NotImplementedError(f"[torch] the size of the residuals of aten.linalg_lstsq.default with "
                                  f"driver={driver!r} depends on the elements, and a program has fixed sizes: use "
                                  "driver='gels' or 'gelsy'")
    has_residuals = driver == "gels" and rows > columns
    real = torch.empty((), dtype=a.dtype, device="meta").real.dtype
    of_batch = a.shape[:-2]
    return (b.new_empty((*leading, columns, *right)),
            a.new_empty((*leading, *right) if has_residuals else (0,), dtype=real),
            a.new_empty(of_batch if driver != "gels" else (0,), dtype=torch.int64),
            a.new_empty((*of_batch, min(rows, columns)) if driver in ("gelsd", "gelss") else (0,), dtype=real))


@lowers("aten.linalg_lstsq")
def linalg_lstsq(a, b, rcond=None, *, driver=None):
    """The least-squares solution of least norm, by singular values; also what `driver` returns besides.

    Residuals are only for "gels", which assumes full rank; for other drivers their size depends on elements.
    """
    *_, rows, columns = a.shape
    is_vector = b.ndim == 1 or a.ndim - 1 == b.ndim and b.shape == a.shape[:-1]
    b = ms.expand_dims(b, axis=-1) if is_vector else b
    real = _real_dtype(a)
    left, values, right = linalg_svd(a)
    limit = torch.finfo(real).eps * max(rows, columns) if rcond is None else rcond
    largest = ms.max(values, axis=-1, keepdims=True) if min(rows, columns) else values
    kept = ms.ones(values.shape, dtype=ms.bool) if driver == "gels" else values > as_dtype(limit, real) * largest
    inverse = ms.where(kept, 1 / ms.where(kept, values, ms.ones_like(values)), ms.zeros_like(values))
    solution = ms.matmul(_adjoint(right), ms.astype(inverse, a.dtype)[..., None] * ms.matmul(_adjoint(left), b))
    residuals = ms.zeros((0,), dtype=values.dtype)
    if driver == "gels" and rows > columns:
        residuals = ms.sum(ms.square(ms.abs(ms.matmul(a, solution) - b)), axis=-2)
        residuals = residuals[..., 0] if is_vector else residuals
    ranks = ms.zeros((0,), dtype=ms.int64) if driver == "gels" else ms.sum(cast(kept, torch.int64), axis=-1)
    return (solution[..., 0] if is_vector else solution, residuals, ranks,
            values if driver in ("gelsd", "gelss") else ms.zeros((0,), dtype=values.dtype))


@lowers("aten.linalg_polar")
def linalg_polar(a):
    left, values, right = linalg_svd(a)
    scaled = _adjoint(right) * ms.astype(values, a.dtype)[..., None, :]
    return ms.matmul(left, right), ms.matmul(scaled, right)


@lowers("aten.linalg_matrix_sqrth")
def linalg_matrix_sqrth(a):
    values, vectors = linalg_eigh(a)
    return ms.matmul(vectors * ms.astype(ms.sqrt(values), a.dtype)[..., None, :], _adjoint(vectors))


@lowers("aten.linalg_matrix_exp")
def linalg_matrix_exp(a):
    return a if 0 in a.shape else ms.linalg.expm(a)
