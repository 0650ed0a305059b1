#!/usr/bin/env python3
"""Compares derivatives of meshard.linalg with JAX's: gradients, forward derivatives, and second derivatives.

usage: compare_linalg_jax.py [COUNT] [--seed SEED]

Each function gives one real number that does not depend on the signs or phases of singular vectors and eigenvectors.
Matrices are real and complex, in float64 and complex128, in batches or not, with distinct eigenvalues and singular
values. Two derivatives agree if they differ by at most 1e-8 of the largest element (1e-6 for second derivatives); where
JAX has none, the difference quotient of the function or of the gradient replaces it.
"""

import pathlib
import sys
import zlib

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import meshard as ms
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import random_calls  # noqa: E402


def adjoint(xp, x):
    return xp.conj(xp.matrix_transpose(x))


def lu_factors(xp, x):
    if xp is ms:
        return ms.linalg.lu_factor(x)[0]
    return jax.lax.linalg.lu(x)[0]


def regular(xp, x):
    """Far from singular, with distinct eigenvalues."""
    return x + xp.asarray(np.diag(np.arange(3.0, 3 + x.shape[-1])).astype(str(x.dtype)))


def mix(xp, x):
    """A number that depends on all elements of a tensor, and on both parts of complex ones."""
    weights = xp.asarray(np.cos(np.arange(np.prod(x.shape))).reshape(x.shape))
    number = xp.sum(xp.real(x) * weights)
    return number + 2 * xp.sum(xp.imag(x) * weights) if "complex" in str(x.dtype) else number


def squares(xp, x):
    return xp.real(x * xp.conj(x))


def of_svd(xp, x):
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    return mix(xp, squares(xp, u)) + mix(xp, s) + mix(xp, squares(xp, vh)) + mix(xp, xp.matmul(u, vh))


def of_eigh(xp, x):
    w, v = xp.linalg.eigh((x + adjoint(xp, x)) / 2)
    product = xp.matmul(v * xp.astype(w * w, v.dtype)[..., None, :], adjoint(xp, v))
    return mix(xp, w) + mix(xp, squares(xp, v)) + mix(xp, product)


def of_qr(xp, x):
    q, r = xp.linalg.qr(x)
    return mix(xp, squares(xp, q)) + mix(xp, squares(xp, r))


def of_slogdet(xp, x):
    sign, log = xp.linalg.slogdet(regular(xp, x))
    return mix(xp, sign) + mix(xp, log)


def of_lstsq(xp, x):
    b = xp.asarray(np.sin(np.arange(x.shape[-2] * 2.0)).reshape(-1, 2).astype(str(x.dtype)))
    if xp is ms:
        return mix(xp, ms.linalg.lstsq(x, b).x)
    solve = lambda a: jnp.linalg.lstsq(a, b)[0]  # noqa: E731
    return mix(xp, solve(x) if x.ndim == 2 else jnp.stack([solve(a) for a in x]))


def of_lu_solve(xp, x):
    a = regular(xp, x)
    b = xp.asarray(np.sin(np.arange(x.shape[-2] * 2.0)).reshape(-1, 2).astype(str(x.dtype)))
    return mix(xp, xp.linalg.solve(a, xp.broadcast_to(b, (*a.shape[:-2], *b.shape))))


def of_eigvals(xp, x):
    w = xp.linalg.eigvals(regular(xp, x))
    return mix(xp, xp.sum(w * w * w, axis=-1)) + mix(xp, xp.sum(1 / w, axis=-1))


def of_eig(xp, x):
    w, v = xp.linalg.eig(regular(xp, x))
    return xp.sum(squares(xp, v) * xp.real(w * w)[..., None, :])


def of_cholesky(xp, x):
    a = xp.matmul(x, adjoint(xp, x)) + xp.asarray(np.eye(x.shape[-2]).astype(str(x.dtype)))
    return mix(xp, xp.linalg.cholesky(a))


def of_expm(xp, x):
    function = ms.linalg.expm if xp is ms else jsl.expm
    return mix(xp, function(x / 2) if xp is ms or x.ndim == 2 else jnp.stack([function(a / 2) for a in x]))


# name -> (function, whether matrices are square, which derivatives JAX has: "all", "first" or "none")
CASES = {
    "svd": (of_svd, False, "all"),
    "svdvals": (lambda xp, x: mix(xp, xp.linalg.svdvals(x)**3), False, "all"),
    "eigh": (of_eigh, True, "all"),
    "eigvalsh": (lambda xp, x: mix(xp, xp.linalg.eigvalsh((x + adjoint(xp, x)) / 2)**3), True, "all"),
    "qr": (of_qr, "tall", "all"),
    "lu": (lambda xp, x: mix(xp, lu_factors(xp, x)**2), False, "all"),
    "solve": (of_lu_solve, True, "all"),
    "inv": (lambda xp, x: mix(xp, xp.linalg.inv(regular(xp, x))), True, "all"),
    "det": (lambda xp, x: mix(xp, xp.linalg.det(regular(xp, x)) / 100), True, "all"),
    "slogdet": (of_slogdet, True, "all"),
    "pinv": (lambda xp, x: mix(xp, xp.linalg.pinv(x)), False, "all"),
    "lstsq": (of_lstsq, "tall", "all"),
    "eigvals": (of_eigvals, True, "first"),
    "eig": (of_eig, True, "none"),
    "cholesky": (of_cholesky, False, "all"),
    "expm": (of_expm, True, "all"),
    "sqrtm": (lambda xp, x: mix(xp, ms.linalg.sqrtm(regular(xp, x))), True, "none"),
    "logm": (lambda xp, x: mix(xp, ms.linalg.logm(regular(xp, x))), True, "none"),
    "matrix_norm 2": (lambda xp, x: mix(xp, xp.linalg.matrix_norm(x, ord=2)), False, "all"),
    "matrix_norm nuc": (lambda xp, x: mix(xp, xp.linalg.matrix_norm(x, ord="nuc")), False, "all"),
    "cond": (lambda xp, x: mix(xp, xp.linalg.cond(x)), False, "all"),
}


def draw_matrix(rng, square):
    batch = [(), (2,)][rng.integers(2)]
    n = int(rng.choice([2, 3]))
    m = n if square is True else n + int(rng.choice([0, 1]) if square == "tall" else rng.choice([-1, 0, 1]))
    x = rng.normal(size=(*batch, m, n))
    if rng.random() < 0.5:
        x = x + 1j * rng.normal(size=x.shape)
    # Singular values, and eigenvalues of the symmetric part, stay apart.
    return x + np.eye(m, n) * np.arange(1.0, n + 1) * 1.5


def close(found, expected, tolerance):
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    error = float(np.abs(found - expected).max(initial=0))
    return error <= tolerance * scale, error / scale



PROGRAMS = {}


def programs(name, shape, dtype):
    """(gradient, forward derivative, second derivative) of meshard and JAX, compiled once."""
    key = name, shape, dtype
    if key not in PROGRAMS:
        function = CASES[name][0]

        def second(grad):
            return lambda x, v, xp: xp.sum(xp.real(grad(x) * v))

        ours = ms.grad(lambda x: function(ms, x))
        theirs = jax.grad(lambda x: function(jnp, x))
        PROGRAMS[key] = (
            ms.jit(ours), ms.jit(lambda x, v: ms.jvp(lambda x: function(ms, x), (x,), (v,))[1]),
            ms.jit(lambda x, v: ms.grad(lambda x: second(ours)(x, v, ms))(x)),
            jax.jit(theirs), jax.jit(lambda x, v: jax.jvp(lambda x: function(jnp, x), (x,), (v,))[1]),
            jax.jit(lambda x, v: jax.grad(lambda x: second(theirs)(x, v, jnp))(x)),
            ms.jit(lambda x: function(ms, x)))
    return PROGRAMS[key]


def quotient(function, x, v, step=1e-5):
    return (function(x + step * v) - function(x - step * v)) / (2 * step)


def difference(name, rng):
    _, square, has = CASES[name]
    x = draw_matrix(rng, square)
    v = rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else 0)
    grad, forward, second, jax_grad, jax_forward, jax_second, value = programs(name, x.shape, str(x.dtype))
    found, turned = grad(ms.asarray(x)).numpy(), float(forward(ms.asarray(x), ms.asarray(v)))
    again = second(ms.asarray(x), ms.asarray(v)).numpy()
    texts = []

    def check(what, found, expected, tolerance):
        good, error = close(np.asarray(found), np.asarray(expected), tolerance)
        if not good:
            texts.append(f"{what} differs by {error:.2g}")

    # The derivatives by both modes are one number.
    check("the forward derivative", turned, np.sum((found * v).real), 1e-8)
    if has != "none":
        check("the gradient", found, jax_grad(x), 1e-8)
        check("the forward derivative of JAX", turned, jax_forward(x, v), 1e-8)
    else:
        check("the difference quotient", turned, quotient(lambda y: float(value(ms.asarray(y))), x, v), 1e-6)
    if has == "all":
        check("the second derivative", again, jax_second(x, v), 1e-6)
    else:
        along = np.sum((again * v).real)
        check("the second difference quotient", along,
              quotient(lambda y: float(np.sum((grad(ms.asarray(y)).numpy() * v).real)), x, v), 1e-5)
    return "; ".join(texts) and f"{x.dtype}{list(x.shape)}: {'; '.join(texts)}"


def compare(count, seed, report=None):
    """Makes `count` comparisons, the same for the same seed. Returns the descriptions of the differences."""

    def describe(i, name):
        rng = np.random.default_rng([seed, i, zlib.crc32(name.encode())])
        with jax.enable_x64(True):
            text = random_calls.guarded(lambda: difference(name, rng))
        return text and f" {text}"

    return random_calls.differences(CASES, count, describe, report)


if __name__ == "__main__":
    sys.exit(random_calls.main(__doc__, CASES, compare))
