"""Random calls of products, linear algebra and transforms, with what NumPy returns."""

import numpy as np
from numpy_calls import CASES, COMPLEX, INEXACT, NUMERIC, REAL, Call, case, real_part

import meshard as ms


@case("matmul")
def _(draw):
    n, dtype = draw.integer(1, 5), draw.choice(NUMERIC)
    batch = draw.shape(0, 1)
    x1 = draw.array(dtype, batch + (draw.integer(1, 4), n) if draw.chance(0.8) else (n,), -3, 3)
    x2 = draw.array(dtype, (n, draw.integer(1, 4)) if draw.chance(0.8) else (n,), -3, 3)
    return Call(ms.matmul, np.matmul, [x1, x2], dtype, "loose")


@case("tensordot")
def _(draw):
    dtype, axes = draw.choice(NUMERIC), draw.integer(0, 2)
    shared = draw.shape(axes, axes)
    arrays = [draw.array(dtype, draw.shape(0, 1) + shared, -3, 3), draw.array(dtype, shared + draw.shape(0, 1), -3, 3)]
    return Call(lambda a, b: ms.tensordot(a, b, axes=axes), lambda a, b: np.tensordot(a, b, axes), arrays, dtype,
                "loose")


@case("vecdot")
def _(draw):
    dtype, shape = draw.choice(NUMERIC), draw.shape(1)
    arrays = [draw.array(dtype, shape, -3, 3) for _ in range(2)]
    return Call(ms.vecdot, lambda a, b: (np.conj(a) * b).sum(-1, dtype=a.dtype), arrays, dtype, "loose")


def matrices(name, theirs, dtypes=REAL, square=True, symmetric=False, positive=False, dtype=None, results=1,
             **arguments):
    def make(draw):
        n = draw.integer(1, 5)
        shape = draw.shape(0, 1) + ((n, n) if square else (n, draw.integer(1, 5)))
        x = draw.array(draw.choice(dtypes), shape, -1, 1)
        if square:
            x = x + (2 * n) * np.eye(n, dtype=x.dtype)  # far from singular
        if symmetric or positive:
            x = (x + np.conj(np.swapaxes(x, -1, -2))) / 2
        result = dtype(x.dtype) if callable(dtype) else x.dtype
        return Call(lambda a: getattr(ms.linalg, name)(a, **arguments), theirs, [x], result, "loose", str(arguments))

    CASES["linalg." + name + "".join(map(str, arguments.values()))] = make


matrices("det", np.linalg.det, dtypes=INEXACT)
matrices("inv", np.linalg.inv, dtypes=INEXACT)
matrices("slogdet", lambda a: tuple(np.linalg.slogdet(a)))
matrices("cholesky", np.linalg.cholesky, dtypes=INEXACT, positive=True)
matrices("eigvalsh", np.linalg.eigvalsh, dtypes=INEXACT, symmetric=True, dtype=real_part)
matrices("svdvals", lambda a: np.linalg.svd(a, compute_uv=False), dtypes=INEXACT, square=False, dtype=real_part)
matrices("pinv", np.linalg.pinv, dtypes=INEXACT, square=True)
matrices("matrix_rank", np.linalg.matrix_rank, dtypes=INEXACT, square=True, dtype=lambda _: "int32")
matrices("trace", lambda a: np.trace(a, axis1=-2, axis2=-1), dtypes=INEXACT, square=False)
matrices("diagonal", lambda a: np.diagonal(a, 1, -2, -1), dtypes=INEXACT, square=False, offset=1)
for _ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    matrices("matrix_norm", lambda a, o=_ord: np.linalg.norm(a, o, (-2, -1)), dtypes=INEXACT, square=False,
             dtype=real_part,
             ord=_ord)


@case("linalg.products")
def _(draw):
    """q @ r, v diag(w) v^H and u diag(s) vh are the matrices."""
    name = draw.choice(("qr", "eigh", "svd"))
    dtype, rows, columns = draw.choice(INEXACT), draw.integer(1, 5), draw.integer(1, 5)
    x = draw.array(dtype, (rows, rows if name == "eigh" else columns), -1, 1)
    if name == "eigh":
        x = (x + np.conj(x.T)) / 2

    def product(a):
        if name == "qr":
            return ms.matmul(*ms.linalg.qr(a))
        if name == "eigh":
            w, v = ms.linalg.eigh(a)
            return ms.matmul(v * w, ms.conj(v.mT))
        u, s, vh = ms.linalg.svd(a, full_matrices=False)
        return ms.matmul(u * s, vh)

    return Call(product, lambda a: a, [x], dtype, "loose", name)


@case("linalg.solve")
def _(draw):
    n, dtype = draw.integer(1, 5), draw.choice(INEXACT)
    x1 = draw.array(dtype, (n, n), -1, 1) + 2 * n * np.eye(n, dtype=dtype)
    x2 = draw.array(dtype, (n, draw.integer(1, 3)) if draw.chance(0.7) else (n,), -1, 1)
    return Call(ms.linalg.solve, np.linalg.solve, [x1.astype(dtype), x2], dtype, "loose")


@case("linalg.vector_norm")
def _(draw):
    shape, order = draw.shape(1), draw.choice((0, 1, 2, 3, np.inf, -np.inf, 0.5))
    axis, keepdims = draw.axis(len(shape)), draw.chance(0.5)
    x = draw.array(draw.choice(INEXACT), shape, -2, 2)
    return Call(lambda a: ms.linalg.vector_norm(a, axis=axis, keepdims=keepdims, ord=order),
                lambda a: np.linalg.norm(a, order, axis, keepdims), [x], real_part(x.dtype), "loose", f"ord={order}")


@case("linalg.cross")
def _(draw):
    dtype, shape = draw.choice(NUMERIC), draw.shape(0, 2) + (3,)
    arrays = [draw.array(dtype, shape, -3, 3) for _ in range(2)]
    return Call(ms.linalg.cross, np.cross, arrays, dtype, "loose")


@case("linalg.outer")
def _(draw):
    dtype = draw.choice(NUMERIC)
    return Call(ms.linalg.outer, np.outer, [draw.array(dtype, draw.shape(1, 1)) for _ in range(2)], dtype, "close")


def transform(name, dtypes, dtype, several=False):
    def make(draw):
        shape = draw.shape(1)
        arguments = {"norm": draw.choice(("backward", "ortho", "forward"))}
        if several:
            arguments["axes"] = tuple(sorted(draw.rng.permutation(len(shape))[:draw.integer(1, len(shape))].tolist()))
            if draw.chance(0.5):
                arguments["s"] = [draw.integer(2, 5) for _ in arguments["axes"]]
        else:
            arguments["axis"] = draw.axis(len(shape))
            if draw.chance(0.5):
                arguments["n"] = draw.integer(2, 8)
        if name in ("irfft", "hfft", "irfftn"):  # a result of no elements is an error
            if several:
                arguments["s"] = [draw.integer(2, 5) for _ in arguments["axes"]]
            else:
                arguments["n"] = draw.integer(2, 8)
        x = draw.array(draw.choice(dtypes), shape, -2, 2)
        return Call(lambda a: getattr(ms.fft, name)(a, **arguments), lambda a: getattr(np.fft, name)(a, **arguments),
                    [x],
                    dtype(x.dtype), "loose", str(arguments))

    CASES["fft." + name] = make


def complex_of(dtype):
    return {"float32": "complex64", "float64": "complex128"}.get(str(dtype), dtype)


for _name in ("fft", "ifft"):
    transform(_name, COMPLEX, complex_of)
    transform(_name + "n", COMPLEX, complex_of, several=True)
for _name in ("rfft", "ihfft"):
    transform(_name, REAL, complex_of)
for _name in ("irfft", "hfft"):
    transform(_name, COMPLEX, real_part)
transform("rfftn", REAL, complex_of, several=True)
transform("irfftn", COMPLEX, real_part, several=True)


@case("fft.frequencies")
def _(draw):
    name, n, d = draw.choice(("fftfreq", "rfftfreq")), draw.integer(1, 9), draw.choice((0.5, 1.0, 3.0))
    return Call(lambda: getattr(ms.fft, name)(n, d=d), lambda: getattr(np.fft, name)(n, d), [], "float32", "close",
                name)


@case("fft.shifts")
def _(draw):
    name, shape = draw.choice(("fftshift", "ifftshift")), draw.shape(1)
    axes = draw.axes(len(shape))
    x = draw.array(draw.choice(INEXACT), shape)
    return Call(lambda a: getattr(ms.fft, name)(a, axes=axes), lambda a: getattr(np.fft, name)(a, axes), [x], x.dtype,
                "exact",
                name)
