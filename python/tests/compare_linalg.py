#!/usr/bin/env python3
"""Compares random calls of meshard.linalg with NumPy: residuals against backward-error bounds.

usage: compare_linalg.py [COUNT] [--seed SEED]

Matrices are random, graded, rank-deficient, with repeated eigenvalues or singular values, zero, empty, or have a NaN;
in batches, some of them split over devices; in float32, float64, complex64 and complex128. Each check states its bound:
a multiple of n * eps and the norms of what takes part. Where LAPACK's answer is not unique, what defines it is checked
(a = q r, q orthonormal, r triangular), otherwise the distance from NumPy's result in float64 or complex128.
"""

import pathlib
import sys
import zlib

import meshard as ms
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import random_calls  # noqa: E402

DTYPES = ["float32", "float64", "complex64", "complex128"]
SQUARES, RECTANGLES = [1, 2, 3, 5, 8], [(1, 4), (5, 2), (3, 6), (8, 5), (4, 4)]
KINDS = ["general"] * 4 + ["graded", "deficient", "repeated", "zero", "nan"]
MESH = ms.Mesh({"x": 4})
CASES = {}  # name -> check(draw)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def norm(x):
    """Frobenius norms [...] of matrices in float64."""
    return np.sqrt(np.sum(np.abs(x)**2, axis=(-1, -2)))


class Draw:
    """A random call: its dtype, and matrices of one batch."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(str(self.rng.choice(DTYPES)))
        self.wide = np.dtype("complex128" if self.dtype.kind == "c" else "float64")
        self.eps = float(np.finfo(self.dtype).eps)
        self.kind = str(self.rng.choice(KINDS))
        self.batch = [(), (4,), (2, 3)][self.rng.integers(3)]
        self.is_split = self.batch == (4,) and self.rng.random() < 0.5
        self.is_empty = self.rng.random() < 0.03
        if self.is_empty:
            self.kind = "general"

    def normal(self, *sizes):
        x = self.rng.normal(size=(*self.batch, *sizes))
        return x + 1j * self.rng.normal(size=x.shape) if self.dtype.kind == "c" else x

    def orthonormal(self, n):
        return np.linalg.qr(self.normal(n, n))[0]

    def square(self):
        n = 0 if self.is_empty else int(self.rng.choice(SQUARES))
        return self.matrix(n, n)

    def rectangle(self):
        m, n = RECTANGLES[self.rng.integers(len(RECTANGLES))]
        return self.matrix(0, n) if self.is_empty else self.matrix(m, n)

    def matrix(self, m, n):
        x = self.normal(m, n)
        least = min(m, n)
        if self.kind == "graded":
            x = x * np.logspace(0, -6, m)[:, None]
        elif self.kind == "deficient" and least > 1:
            x = self.normal(m, least - 1) @ self.normal(least - 1, n)
        elif self.kind == "repeated":
            values = np.where(np.arange(least) < least // 2, 2.0, 1.0)
            x = self.orthonormal(m)[..., :least] * values @ self.orthonormal(n)[..., :least, :]
        elif self.kind == "zero":
            x = np.zeros_like(x)
        elif self.kind == "nan" and x.size:
            x.reshape(-1)[self.rng.integers(x.size)] = np.nan
        return x.astype(self.dtype)

    def hermitian(self):
        x = self.square()
        if self.kind == "repeated":
            n = x.shape[-1]
            q = self.orthonormal(n)
            x = q * np.where(np.arange(n) < n // 2, 2.0, -1.0) @ adjoint(q)
        return ((x + adjoint(x)) / 2).astype(self.dtype)

    def positive(self):
        n = 0 if self.is_empty else int(self.rng.choice(SQUARES))
        x = self.normal(n, n)
        return (x @ adjoint(x) + np.eye(n)).astype(self.dtype)

    def tensor(self, array):
        """Split along its batch in a part of the calls."""
        return ms.mark_sharding(ms.asarray(array), MESH, ms.P("x")) if self.is_split else ms.asarray(array)

    def __str__(self):
        split = " split" if self.is_split else ""
        return f"{self.kind} {self.dtype} batch {self.batch}{split}{' empty' if self.is_empty else ''}"


class Failed(Exception):
    pass


def case(check):
    CASES[check.__name__] = check
    return check


def wide(draw, *tensors):
    """Arrays in float64 or complex128, after the dtypes are checked."""
    found = []
    for x in tensors:
        array = x.numpy()
        if array.dtype.kind in "fc":
            if np.finfo(array.dtype).eps != draw.eps:
                raise Failed(f"the result is {array.dtype}")
            array = array.astype("complex128" if array.dtype.kind == "c" else "float64")
        found.append(array)
    return found


def small(what, error, bound):
    """Checks errors against bounds, for each matrix."""
    error, bound = np.broadcast_arrays(np.asarray(error), np.asarray(bound))
    wrong = ~(error <= bound + np.finfo(np.float64).tiny)
    if wrong.any():
        raise Failed(f"{what}: {error[wrong][0]:.3g} > {bound[wrong][0]:.3g}")


def bad_matrices(a):
    return ~np.isfinite(a).all(axis=(-1, -2))


def nan_where_bad(draw, a, *results):
    """For matrices with NaN, some element of each result is not finite; the others are checked as usual."""
    bad = bad_matrices(a)
    if not bad.any():
        return None
    for x in results:
        lost = ~np.isfinite(x).reshape(*a.shape[:-2], -1).all(axis=-1)
        if x.size and not lost[bad].all():
            raise Failed("a matrix with NaN gave finite numbers")
    return bad


def good(bad, *arrays):
    """Without the matrices that have NaN."""
    if bad is None:
        return arrays
    return tuple(x[~bad] for x in arrays)


def orthonormal(draw, what, q):
    small(f"{what} is orthonormal", norm(adjoint(q) @ q - np.eye(q.shape[-1])), 20 * max(q.shape[-2:]) * draw.eps)


def sizes(a):
    return max(1, *a.shape[-2:])


@case
def lu(draw):
    a = draw.rectangle()
    p, l, u = wide(draw, *ms.linalg.lu(draw.tensor(a)))
    both = np.concatenate([l.reshape(*a.shape[:-2], -1), u.reshape(*a.shape[:-2], -1)], axis=-1)
    bad = nan_where_bad(draw, a, both)
    a, p, l, u = good(bad, a.astype(draw.wide), p, l, u)
    if not ((p == 0) | (p == 1)).all() or not (p.sum(-1) == 1).all():
        raise Failed("p is not a permutation")
    if not (np.triu(l, 1) == 0).all() or not (np.tril(u, -1) == 0).all() or (np.abs(l) > 1 + 4 * draw.eps).any() \
            and draw.dtype.kind == "f":
        raise Failed("the factors are not triangular, or l is larger than 1")
    small("a - p l u", norm(a - p @ l @ u), 4 * sizes(a) * draw.eps * norm(l) * norm(u))


def solution(draw, a, x, b):
    """The backward error of solutions of a x = b."""
    bound = 20 * sizes(a) * draw.eps * sizes(a) * (norm(a) * norm(x) + norm(b))
    small("b - a x", norm(b - a @ x), bound)


def regular(a):
    """Which matrices are far enough from singular ones to have an inverse in their precision."""
    values = np.linalg.svd(np.where(np.isfinite(a), a, 0), compute_uv=False)
    return values[..., -1] > values[..., 0] * 1e-4 if values.shape[-1] else np.ones(a.shape[:-2], bool)


@case
def solve(draw):
    a = draw.square()
    b = draw.normal(a.shape[-1], 3).astype(draw.dtype)
    x, = wide(draw, ms.linalg.solve(draw.tensor(a), draw.tensor(b)))
    keep = regular(a.astype(draw.wide)) & ~bad_matrices(a)
    nan_where_bad(draw, a, x)
    solution(draw, a.astype(draw.wide)[keep], x[keep], b.astype(draw.wide)[keep])


@case
def inv(draw):
    a = draw.square()
    x, = wide(draw, ms.linalg.inv(draw.tensor(a)))
    keep = regular(a.astype(draw.wide)) & ~bad_matrices(a)
    nan_where_bad(draw, a, x)
    a, x = a.astype(draw.wide)[keep], x[keep]
    small("a x - 1", norm(a @ x - np.eye(a.shape[-1])), 20 * sizes(a)**2 * draw.eps * norm(a) * norm(x))


@case
def lu_solve(draw):
    a = draw.square()
    b = draw.normal(a.shape[-1], 2).astype(draw.dtype)
    kind = str(draw.rng.choice(["none", "transpose", "adjoint"]))
    factors, pivots = ms.linalg.lu_factor(draw.tensor(a))
    x, = wide(draw, ms.linalg.lu_solve(factors, pivots, draw.tensor(b), kind))
    keep = regular(a.astype(draw.wide)) & ~bad_matrices(a)
    of = {"none": lambda x: x, "transpose": lambda x: np.swapaxes(x, -1, -2), "adjoint": adjoint}[kind]
    solution(draw, of(a.astype(draw.wide)[keep]), x[keep], b.astype(draw.wide)[keep])


def determinants_nearby(a):
    """How much the determinant changes at most if the matrix changes by its norm: |d det| <= |adj(a)| |da|."""
    n = a.shape[-1]
    return norm(a) * (norm(a) / np.sqrt(max(n - 1, 1)))**max(n - 1, 0) if n else 1.0


@case
def det(draw):
    a = draw.square()
    d, = wide(draw, ms.linalg.det(draw.tensor(a)))
    bad = nan_where_bad(draw, a, d)
    a, d = good(bad, a.astype(draw.wide), d)
    small("det", np.abs(d - np.linalg.det(a)),
          50 * sizes(a)**2 * draw.eps * determinants_nearby(a))


@case
def slogdet(draw):
    a = draw.square()
    sign, log = wide(draw, *ms.linalg.slogdet(draw.tensor(a)))
    bad = nan_where_bad(draw, a, log)
    a, sign, log = good(bad, a.astype(draw.wide), sign, log)
    small("sign exp(log)", np.abs(sign * np.exp(log) - np.linalg.det(a)),
          50 * sizes(a)**2 * draw.eps * determinants_nearby(a))


@case
def cholesky(draw):
    a = draw.positive()
    upper = bool(draw.rng.random() < 0.5)
    l, = wide(draw, ms.linalg.cholesky(draw.tensor(a), upper=upper))
    l, a = adjoint(l) if upper else l, a.astype(draw.wide)
    small("a - l adjoint(l)", norm(a - l @ adjoint(l)), 4 * sizes(a) * draw.eps * norm(a))
    if not (np.triu(l, 1) == 0).all():
        raise Failed("l is not triangular")


@case
def cholesky_solve(draw):
    a = draw.positive()
    b = draw.normal(a.shape[-1], 2).astype(draw.dtype)
    upper = bool(draw.rng.random() < 0.5)
    x, = wide(draw, ms.linalg.cholesky_solve(ms.linalg.cholesky(draw.tensor(a), upper=upper), draw.tensor(b), upper))
    solution(draw, a.astype(draw.wide), x, b.astype(draw.wide))


@case
def qr(draw):
    a = draw.rectangle()
    mode = str(draw.rng.choice(["reduced", "complete"]))
    q, r = wide(draw, *ms.linalg.qr(draw.tensor(a), mode=mode))
    bad = nan_where_bad(draw, a, r)
    a, q, r = good(bad, a.astype(draw.wide), q, r)
    small("a - q r", norm(a - q @ r), 20 * sizes(a) * draw.eps * norm(a))
    orthonormal(draw, "q", q)
    if not (np.tril(r, -1) == 0).all():
        raise Failed("r is not triangular")


def singular_values(draw, a, s):
    error = np.abs(s - np.linalg.svd(a, compute_uv=False)).max(axis=-1, initial=0)
    small("s", error, 20 * sizes(a) * draw.eps * norm(a))
    if not (np.diff(s) <= 0).all() or not (s >= 0).all():
        raise Failed("the singular values are not descending")


@case
def svd(draw):
    a = draw.rectangle()
    full = bool(draw.rng.random() < 0.5)
    u, s, vh = wide(draw, *ms.linalg.svd(draw.tensor(a), full_matrices=full))
    bad = nan_where_bad(draw, a, u, s, vh)
    a, u, s, vh = good(bad, a.astype(draw.wide), u, s, vh)
    least = s.shape[-1]
    rest = a - u[..., :least] * s[..., None, :] @ vh[..., :least, :]
    small("a - u s vh", norm(rest), 20 * sizes(a) * draw.eps * norm(a))
    orthonormal(draw, "u", u)
    orthonormal(draw, "vh", adjoint(vh))
    singular_values(draw, a, s)


@case
def svdvals(draw):
    a = draw.rectangle()
    s, = wide(draw, ms.linalg.svdvals(draw.tensor(a)))
    bad = nan_where_bad(draw, a, s)
    singular_values(draw, *good(bad, a.astype(draw.wide), s))


@case
def eigh(draw):
    a = draw.hermitian()
    w, v = wide(draw, *ms.linalg.eigh(draw.tensor(a)))
    bad = nan_where_bad(draw, a, w, v)
    a, w, v = good(bad, a.astype(draw.wide), w, v)
    small("a v - v w", norm(a @ v - v * w[..., None, :]), 20 * sizes(a) * draw.eps * norm(a))
    orthonormal(draw, "v", v)
    eigenvalues_of_hermitian(draw, a, w)


def eigenvalues_of_hermitian(draw, a, w):
    error = np.abs(w - np.linalg.eigvalsh(a)).max(axis=-1, initial=0)
    small("w", error, 20 * sizes(a) * draw.eps * norm(a))


@case
def eigvalsh(draw):
    a = draw.hermitian()
    w, = wide(draw, ms.linalg.eigvalsh(draw.tensor(a)))
    bad = nan_where_bad(draw, a, w)
    eigenvalues_of_hermitian(draw, *good(bad, a.astype(draw.wide), w))


@case
def eig(draw):
    a = draw.square()
    w, v = wide(draw, *ms.linalg.eig(draw.tensor(a)))
    bad = nan_where_bad(draw, a, w, v)
    a, w, v = good(bad, a.astype(draw.wide), w, v)
    small("a v - v w", norm(a @ v - v * w[..., None, :]), 50 * sizes(a) * draw.eps * norm(a))
    small("the norms of v", np.abs(np.sqrt(np.sum(np.abs(v)**2, axis=-2)) - 1).max(axis=-1, initial=0), 10 * draw.eps)


@case
def eigvals(draw):
    a = draw.square()
    w, = wide(draw, ms.linalg.eigvals(draw.tensor(a)))
    bad = nan_where_bad(draw, a, w)
    a, w = good(bad, a.astype(draw.wide), w)
    n = a.shape[-1]
    if n:  # each is an eigenvalue of a matrix that is near
        near = np.linalg.svd(a[..., None, :, :] - w[..., :, None, None] * np.eye(n), compute_uv=False)[..., -1]
        small("w", near.max(axis=-1), 50 * n * draw.eps * norm(a))


@case
def schur(draw):
    a = draw.square()
    complex_form = bool(draw.rng.random() < 0.5)
    try:
        t, z = wide(draw, *ms.linalg.schur(draw.tensor(a), complex_form))
    except ms.Error as error:
        if not complex_form and "the real Schur form needs LAPACK" in str(error):
            return
        raise
    bad = nan_where_bad(draw, a, t, z)
    a, t, z = good(bad, a.astype(draw.wide), t, z)
    small("a - z t adjoint(z)", norm(a - z @ t @ adjoint(z)), 50 * sizes(a) * draw.eps * norm(a))
    orthonormal(draw, "z", z)
    if not (np.tril(t, -1 if t.dtype.kind == "c" else -2) == 0).all():
        raise Failed("t is not triangular")


def with_clear_rank(draw, a):
    """The matrices whose singular values are far from the tolerance; their largest and least kept values, and ranks."""
    s = np.linalg.svd(np.where(np.isfinite(a), a, 0).astype(draw.wide), compute_uv=False)
    if not s.shape[-1]:
        return np.zeros(a.shape[:-2], bool), s, s, np.zeros(a.shape[:-2], int)
    tolerance = sizes(a) * draw.eps * s[..., :1]
    clear = ((s > 1000 * tolerance) | (s < 0.001 * tolerance) | (tolerance == 0)).all(axis=-1)
    # The zeros of matrices that were made of fewer are rounding errors.
    ranks = (s > 1000 * tolerance).sum(axis=-1)
    least = np.where(s > 1000 * tolerance, s, np.inf).min(axis=-1)
    return clear & ~bad_matrices(a), s[..., 0], np.where(np.isfinite(least), least, 1), ranks


@case
def matrix_rank(draw):
    a = draw.rectangle()
    rank = ms.linalg.matrix_rank(draw.tensor(a)).numpy()
    clear, _, _, ranks = with_clear_rank(draw, a)
    if not (rank[clear] == ranks[clear]).all():
        raise Failed(f"{rank} instead of {ranks}")


@case
def pinv(draw):
    a = draw.rectangle()
    p, = wide(draw, ms.linalg.pinv(draw.tensor(a)))
    nan_where_bad(draw, a, p)
    clear, largest, least, _ = with_clear_rank(draw, a)
    a, p, largest, least = a.astype(draw.wide)[clear], p[clear], largest[clear], least[clear]
    expected = np.linalg.pinv(a, sizes(a) * draw.eps)
    small("pinv", norm(p - expected), 50 * sizes(a) * draw.eps * largest / least * norm(expected))


@case
def lstsq(draw):
    a = draw.rectangle()
    b = draw.normal(a.shape[-2], 2).astype(draw.dtype)
    x, _, rank, s = ms.linalg.lstsq(draw.tensor(a), draw.tensor(b))
    x, s = wide(draw, x, s)
    rank = rank.numpy()
    clear, largest, least, ranks = with_clear_rank(draw, a)
    if not (rank[clear] == ranks[clear]).all():
        raise Failed(f"rank {rank} instead of {ranks}")
    a, b, x = a.astype(draw.wide)[clear], b.astype(draw.wide)[clear], x[clear]
    largest, least = largest[clear], least[clear]
    expected = np.linalg.pinv(a, sizes(a) * draw.eps) @ b
    ratio = largest / least
    bound = 50 * sizes(a) * draw.eps * (ratio * norm(expected) + ratio * norm(b) / least)
    small("x", norm(x - expected), bound)
    singular_values(draw, a, s[clear])


@case
def cond(draw):
    a = draw.square()
    if not a.size:
        return
    order = [None, 2, -2, "fro", 1, -1, np.inf][draw.rng.integers(7)]
    c, = wide(draw, ms.linalg.cond(draw.tensor(a), order))
    keep = regular(a.astype(draw.wide)) & ~bad_matrices(a)
    a = np.where(keep[..., None, None], a, np.eye(a.shape[-1])).astype(draw.wide)
    expected, largest = np.asarray(np.linalg.cond(a, order)), np.maximum(np.linalg.cond(a), 1)
    small("cond", np.abs(c - expected)[keep], (50 * sizes(a)**2 * draw.eps * largest * expected)[keep])


@case
def matrix_norm(draw):
    a = draw.rectangle()
    if not a.size:
        return
    order = ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf][draw.rng.integers(8)]
    found, = wide(draw, ms.linalg.matrix_norm(draw.tensor(a), ord=order))
    bad = nan_where_bad(draw, a, found)
    a, found = good(bad, a.astype(draw.wide), found)
    expected = np.linalg.norm(a, order, axis=(-2, -1))
    small("norm", np.abs(found - expected), 20 * sizes(a) * draw.eps * norm(a) * np.sqrt(sizes(a)))


def exponential(a):
    """The Taylor series of scaled matrices in long double."""
    a = a.astype("clongdouble" if a.dtype.kind == "c" else "longdouble")
    times = 0 if not a.size else max(0, int(np.ceil(np.log2(max(1e-30, float(np.abs(a).sum(axis=-1).max()))))) + 3)
    a = a / np.longdouble(2)**times
    total = term = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    for k in range(1, 24):
        term = term @ a / np.longdouble(k)
        total = total + term
    for _ in range(times):
        total = total @ total
    return total.astype("complex128" if a.dtype.kind == "c" else "float64")


@case
def expm(draw):
    a = draw.square()
    e, = wide(draw, ms.linalg.expm(draw.tensor(a)))
    bad = nan_where_bad(draw, a, e)
    a, e = good(bad, a.astype(draw.wide), e)
    # The condition number of the exponential of a matrix that is not normal is at most that of its norm.
    small("expm", norm(e - exponential(a)), 20 * sizes(a) * draw.eps * (1 + norm(a)) * np.exp(norm(a)))


def apart_from_negative(a):
    """Which matrices have eigenvalues that are far from zero and from the negative real axis."""
    w = np.linalg.eigvals(np.where(np.isfinite(a), a, 0))
    return (np.abs(np.angle(w)) < 3).all(axis=-1) & regular(a) & ~bad_matrices(a)


@case
def sqrtm(draw):
    a = draw.square()
    x, = wide(draw, ms.linalg.sqrtm(draw.tensor(a)))
    nan_where_bad(draw, a, x)
    keep = apart_from_negative(a.astype(draw.wide))
    a, x = a.astype(draw.wide)[keep], x[keep]
    small("a - x x", norm(a - x @ x), 50 * sizes(a) * draw.eps * (norm(x)**2 + norm(a)))
    if x.size and not (np.linalg.eigvals(x).real > -1e-3 * norm(x)[..., None]).all():
        raise Failed("not the principal root")


@case
def logm(draw):
    a = draw.square()
    x, = wide(draw, ms.linalg.logm(draw.tensor(a)))
    nan_where_bad(draw, a, x)
    keep = apart_from_negative(a.astype(draw.wide))
    a, x = a.astype(draw.wide)[keep], x[keep]
    ratio = norm(a) * norm(np.linalg.inv(a))
    small("a - exp(x)", norm(a - exponential(x)),
          100 * sizes(a) * draw.eps * (1 + norm(x)) * ratio * np.exp(np.minimum(norm(x), 20)))


@case
def tensorsolve(draw):
    a, b = draw.rng.normal(size=(2, 3, 6)) + 3 * np.eye(6).reshape(2, 3, 6), draw.rng.normal(size=(2, 3))
    a, b = a.astype(draw.dtype), b.astype(draw.dtype)
    x, = wide(draw, ms.linalg.tensorsolve(ms.asarray(a), ms.asarray(b)))
    solution(draw, a.astype(draw.wide).reshape(6, 6), x.reshape(6, 1), b.astype(draw.wide).reshape(6, 1))


def difference_of(check, draw):
    with np.errstate(all="ignore"):
        try:
            check(draw)
        except Failed as failed:
            return str(failed)
    return None


def compare(count, seed, report=None):
    """Makes `count` calls, the same for the same seed. Returns the descriptions of the differences."""

    def describe(i, name):
        draw = Draw([seed, i, zlib.crc32(name.encode())])
        text = random_calls.guarded(lambda: difference_of(CASES[name], draw))
        return text and f" ({draw}): {text}"

    return random_calls.differences(CASES, count, describe, report)


if __name__ == "__main__":
    sys.exit(random_calls.main(__doc__, CASES, compare))
