"""meshard.numpy: each expression gives what NumPy gives, also inside jit and of sharded tensors."""

import warnings

import numpy
import pytest

import meshard as ms
import meshard.numpy as mnp

DRAW = numpy.random.default_rng(48)


def real(*shape):
    return DRAW.uniform(-4, 4, shape).astype("float32")


def whole(*shape, low=-5, high=9):
    return DRAW.integers(low, high, shape).astype("int32")


def complexes(*shape):
    return (real(*shape) + 1j * real(*shape)).astype("complex64")


def with_nan(*shape):
    values = real(*shape)
    values[DRAW.random(shape) < 0.3] = numpy.nan
    return values


A, B, C, V, W = real(4, 6), real(4, 6), real(3, 4, 6), real(8), real(5)
I, J, Z, N, S = whole(4, 6), whole(8, low=0, high=6), complexes(4, 4), with_nan(5, 8), numpy.sort(real(9))
SQUARE = real(4, 4) + 4 * numpy.eye(4, dtype="float32")
MASK = A > 0

# What is traced with jit, too; the arguments are x, y, ...
EXPRESSIONS = {
    "creation": [
        (lambda np, x: np.diag(x), [V]),
        (lambda np, x: np.diag(x, -2), [V]),
        (lambda np, x: np.diag(x, 1), [A]),
        (lambda np, x: np.diagflat(x, 1), [W]),
        (lambda np, x: np.vander(x), [W]),
        (lambda np, x: np.vander(x, 3, True), [W]),
        (lambda np, x: np.tril(x, 1), [C]),
        (lambda np, x: np.triu(x, -1), [A]),
        (lambda np, x: np.full_like(x, 3), [I]),
        (lambda np, x, y: np.meshgrid(x, y), [V, W]),
        (lambda np, x, y: np.meshgrid(x, y, indexing="ij"), [V, W]),
        (lambda np, x, y: np.meshgrid(x, y, sparse=True), [V, W]),
        (lambda np, x: np.zeros_like(x) + np.eye(4, 6, k=1), [A]),
    ],
    "shapes": [
        (lambda np, x: np.ravel(x), [A]),
        (lambda np, x: np.resize(x, (3, 5)), [V]),
        (lambda np, x: np.transpose(x), [C]),
        (lambda np, x: np.moveaxis(x, 0, -1), [C]),
        (lambda np, x: np.rollaxis(x, 2), [C]),
        (lambda np, x: np.rollaxis(x, 0, 3), [C]),
        (lambda np, x: np.swapaxes(x, 0, 2), [C]),
        (lambda np, x: np.squeeze(x[None, :, None]), [V]),
        (lambda np, x: np.expand_dims(x, (0, 2)), [V]),
        (lambda np, x: np.atleast_2d(x), [V]),
        (lambda np, x: np.atleast_3d(x), [A]),
        (lambda np, x, y: np.concatenate([x, y]), [A, B]),
        (lambda np, x, y: np.concatenate([x, y], axis=None), [A, V]),
        (lambda np, x, y: np.vstack([x, y]), [A, B]),
        (lambda np, x, y: np.hstack([x, y]), [V, W]),
        (lambda np, x, y: np.dstack([x, y]), [A, B]),
        (lambda np, x, y: np.column_stack([x, y]), [V, V]),
        (lambda np, x, y: np.block([[x, y], [y, x]]), [A, B]),
        (lambda np, x: np.block([x, x]), [V]),
        (lambda np, x, y: np.append(x, y), [A, V]),
        (lambda np, x: np.split(x, 3, axis=1), [A]),
        (lambda np, x: np.split(x, [1, 3]), [A]),
        (lambda np, x: np.array_split(x, 3), [V]),
        (lambda np, x: np.hsplit(x, 2), [A]),
        (lambda np, x: np.vsplit(x, 2), [A]),
        (lambda np, x: np.repeat(x, 3), [V]),
        (lambda np, x: np.repeat(x, 2, axis=1), [A]),
        (lambda np, x: np.tile(x, (2, 3)), [V]),
        (lambda np, x: np.flip(x), [A]),
        (lambda np, x: np.flipud(x), [A]),
        (lambda np, x: np.fliplr(x), [A]),
        (lambda np, x: np.rot90(x), [A]),
        (lambda np, x: np.rot90(x, 3), [A]),
        (lambda np, x: np.rot90(x, 2, (1, 2)), [C]),
        (lambda np, x: np.roll(x, 2), [A]),
        (lambda np, x: np.roll(x, (1, -2), (0, 1)), [A]),
        (lambda np, x: np.pad(x, 2), [V]),
        (lambda np, x: np.pad(x, ((1, 2), (0, 3)), constant_values=7), [A]),
        (lambda np, x: np.pad(x, (1, 2), "constant", constant_values=(3, 4)), [A]),
        (lambda np, x: np.pad(x, 3, "reflect"), [A]),
        (lambda np, x: np.pad(x, ((2, 0), (1, 4)), "symmetric"), [A]),
        (lambda np, x: np.pad(x, 2, "edge"), [C]),
        (lambda np, x: np.pad(x, 3, "wrap"), [A]),
        (lambda np, x: np.insert(x, 2, 9.0), [V]),
        (lambda np, x: np.insert(x, [1, 1, 4], [7, 8, 9]), [V]),
        (lambda np, x, y: np.insert(x, 1, y, axis=0), [A, real(6)]),
        (lambda np, x: np.insert(x, slice(1, 3), 5, axis=1), [A]),
        (lambda np, x: np.insert(x, -1, 9.0, axis=1), [A]),
        (lambda np, x: np.delete(x, 2), [V]),
        (lambda np, x: np.delete(x, [0, -1], axis=1), [A]),
        (lambda np, x: np.take(x, [3, 0, -1]), [A]),
        (lambda np, x: np.take(x, [[1, 2]], axis=1), [A]),
        (lambda np, x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0), [A]),
        (lambda np, x: np.diagonal(x), [C]),
        (lambda np, x: np.diagonal(x, 1, 1, 2), [C]),
        (lambda np, x: np.trace(x), [C]),
        (lambda np, x: np.apply_along_axis(lambda r: r[::-1] * 2, 0, x), [C]),
        (lambda np, x: np.apply_along_axis(lambda r: r.sum(), 1, x), [C]),
        (lambda np, x: np.apply_over_axes(np.sum, x, [0, 2]), [C]),
        (lambda np, x: np.unravel_index(x, (3, 4)), [numpy.array([0, 5, 11], "int32")]),
        (lambda np, x: np.ravel_multi_index((x, x), (6, 7)), [J]),
        (lambda np, x: np.broadcast_to(x, (2, 8)), [V]),
    ],
    "reductions": [
        (lambda np, x: np.sum(x, axis=(0, 2)), [C]),
        (lambda np, x, m: np.sum(x, 0, initial=3, where=m), [A, MASK]),
        (lambda np, x: np.prod(x, 1), [A]),
        (lambda np, x: np.max(x, axis=1, keepdims=True), [A]),
        (lambda np, x, m: np.max(x, axis=1, initial=-9, where=m), [A, MASK]),
        (lambda np, x: np.ptp(x, axis=0), [A]),
        (lambda np, x: np.mean(x), [I]),
        (lambda np, x, m: np.mean(x, axis=1, where=m), [A, MASK]),
        (lambda np, x: np.var(x, axis=0, ddof=1), [A]),
        (lambda np, x: np.std(x), [I]),
        (lambda np, x: np.argmax(x), [A]),
        (lambda np, x: np.argmin(x, 1), [A]),
        (lambda np, x, y: np.average(x, weights=abs(y)), [A, B]),
        (lambda np, x, y: np.average(x, 1, abs(y)), [A, real(6)]),
        (lambda np, x, y: np.average(x, 1, abs(y), returned=True), [A, B]),
        (lambda np, x: np.average(x, 0, returned=True), [A]),
        (lambda np, x: np.cumsum(x), [A]),
        (lambda np, x: np.cumprod(x, 1), [A]),
        (lambda np, x: np.nansum(x, 0), [N]),
        (lambda np, x: np.nanprod(x), [N]),
        (lambda np, x: np.nancumsum(x), [N]),
        (lambda np, x: np.nancumprod(x, 1), [N]),
        (lambda np, x: np.nanmean(x, 1), [N]),
        (lambda np, x: np.nanvar(x, 0, ddof=1), [N]),
        (lambda np, x: np.nanstd(x), [N]),
        (lambda np, x: np.nanmax(x, 0), [N]),
        (lambda np, x: np.nanmin(x), [N]),
        (lambda np, x: np.nanargmax(x), [N]),
        (lambda np, x: np.nanargmin(x, 1), [N]),
        (lambda np, x: np.quantile(x, 0.3), [A]),
        (lambda np, x: np.quantile(x, [0.1, 0.5], axis=1), [A]),
        (lambda np, x: np.percentile(x, [[10, 30], [60, 99]], axis=(0, 2)), [C]),
        (lambda np, x: np.percentile(x, 40, axis=1, keepdims=True), [C]),
        (lambda np, x: np.median(x, axis=0), [A]),
        (lambda np, x: np.median(x), [I]),
        (lambda np, x: np.median(x), [N]),
        (lambda np, x: np.nanmedian(x, 1), [N]),
        (lambda np, x: np.nanpercentile(x, [20, 70], axis=0), [N]),
        *(
            ((lambda np, x, m=m: np.quantile(x, 0.37, axis=1, method=m)), [A])
            for m in ("lower", "higher", "midpoint", "nearest")
        ),
        (lambda np, x: np.cov(x), [A]),
        (lambda np, x, y: np.cov(x, y), [V, V[::-1].copy()]),
        (lambda np, x: np.cov(x, rowvar=False, bias=True), [A]),
        (lambda np, x: np.corrcoef(x), [A]),
        (lambda np, x: np.count_nonzero(x, 1), [I]),
        (lambda np, x: np.any(x, 0), [MASK]),
        (lambda np, x: np.all(x), [MASK]),
    ],
    "functions": [
        (lambda np, x: np.round(x, 2), [A]),
        (lambda np, x: np.round(x, -1), [I * 7]),
        (lambda np, x: np.rint(x), [A]),
        (lambda np, x: np.fix(x), [A]),
        (lambda np, x: np.modf(x), [A]),
        (lambda np, x: np.frexp(x), [A * 1000]),
        (lambda np, x: np.frexp(x), [numpy.array([0, 1e-37, numpy.inf, -3], "float32")]),
        (lambda np, x, y: np.ldexp(x, y), [A, I]),
        (lambda np, x: np.spacing(x), [A]),
        (lambda np, x, y: np.divmod(x, y), [I, I * 0 + 3]),
        (lambda np, x, y: np.divmod(x, y), [A, B]),
        (lambda np, x, y: np.gcd(x, y), [I * 6, I * 0 + 12]),
        (lambda np, x, y: np.lcm(x, y), [I, I * 0 + 4]),
        (lambda np, x: np.clip(x, -1, None), [A]),
        (lambda np, x, y: np.fmax(x, y), [N, real(5, 8)]),
        (lambda np, x, y: np.fmin(x, y), [N, with_nan(5, 8)]),
        (lambda np, x: np.heaviside(x, 0.5), [numpy.round(A)]),
        (lambda np, x, y: np.isclose(x, y, atol=0.5), [A, B]),
        (lambda np, x: np.isclose(x, x, equal_nan=True), [N]),
        (lambda np, x: np.allclose(x, x + 1e-7), [A]),
        (lambda np, x, y: np.array_equal(x, y), [A, B]),
        (lambda np, x: np.array_equiv(x, x[:1]), [numpy.ones((3, 2), "float32")]),
        (lambda np, x: np.isneginf(x / 0 * 1), [A]),
        (lambda np, x: np.isreal(x), [Z]),
        (lambda np, x: np.nan_to_num(x, nan=7), [N]),
        (lambda np, x: np.nan_to_num(x * np.inf, posinf=3, neginf=-3), [A]),
        (lambda np, x: np.bitwise_count(x), [I]),
        (lambda np, x: np.invert(x), [I]),
        (lambda np, x: np.left_shift(x, 2), [I]),
        (lambda np, x: np.deg2rad(x), [A]),
        (lambda np, x: np.degrees(x), [A]),
        (lambda np, x: np.angle(x), [Z]),
        (lambda np, x: np.angle(x, deg=True), [A]),
        (lambda np, x: np.sinc(x), [A]),
        (lambda np, x, y: np.logaddexp2(x, y), [A, B]),
        (lambda np, x: np.float_power(x, 2), [A]),
        (lambda np, x, y, m: np.where(m, x, y), [A, B, MASK]),
        (lambda np, x, y: np.select([x > 1, x > 0], [x, y], -1), [A, B]),
        (lambda np, x, c: np.choose(c, [x, x * 2, x * 3]), [V, J % 3]),
        (lambda np, x: np.piecewise(x, [x < 0, x >= 1], [lambda v: -v, 5, lambda v: v * 2]), [A]),
        (lambda np, x, y: np.dot(x, y), [A, real(6, 3)]),
        (lambda np, x, y: np.dot(x, y), [C, real(2, 6, 5)]),
        (lambda np, x: np.dot(x, x), [V]),
        (lambda np, x: np.vdot(x, x * 1j), [Z]),
        (lambda np, x, y: np.inner(x, y), [C, A]),
        (lambda np, x, y: np.outer(x, y), [A, W]),
        (lambda np, x, y: np.kron(x, y), [A, real(2, 3)]),
        (lambda np, x, y: np.kron(x, y), [V, A]),
        (lambda np, x, y: np.tensordot(x, y, axes=([1, 2], [0, 1])), [C, real(4, 6, 2)]),
        (lambda np, x, y: np.cross(x, y, axis=0), [real(3, 5), real(3, 5)]),
        *(
            ((lambda np, x, y, m=m: np.convolve(x, y, m)), [a, b])
            for m in ("full", "same", "valid")
            for a, b in ((V, W), (W, V), (V, real(4)))
        ),
        *(
            ((lambda np, x, y, m=m: np.correlate(x, y, m)), [a, b])
            for m in ("full", "same", "valid")
            for a, b in ((V, W), (complexes(7), complexes(3)), (V, real(4)))
        ),
        (lambda np, x, y: np.correlate(x, y, "valid"), [W, V]),
        (lambda np, x: np.diff(x, 2, axis=0), [A]),
        (lambda np, x: np.diff(x, prepend=0), [A]),
        (lambda np, x: np.ediff1d(x, 9, [1, 2]), [A]),
        (lambda np, x: np.gradient(x), [A]),
        (lambda np, x, y: np.gradient(x, y, axis=1), [A, numpy.sort(real(6))]),
        (lambda np, x: np.gradient(x, 2.0, axis=0), [A]),
        (lambda np, x: np.trapezoid(x), [A]),
        (lambda np, x, y: np.trapezoid(x, y, axis=0), [A, numpy.sort(real(4))]),
        (lambda np, x: np.unwrap(x * 3), [A]),
        (lambda np, x: np.unwrap(x * 3, axis=0, period=2), [A]),
        (lambda np, x, xp, fp: np.interp(x, xp, fp), [A, S, real(9)]),
        (lambda np, x, xp, fp: np.interp(x, xp, fp, left=-1, right=9), [A, S, real(9)]),
        (
            lambda np, x, xp, fp: np.interp(x, xp, fp, period=3),
            [A, numpy.linspace(0, 2.5, 9).astype("float32"), real(9)],
        ),
    ],
    "order": [
        (lambda np, x: np.sort(x, axis=0), [A]),
        (lambda np, x: np.sort(x, axis=None), [A]),
        (lambda np, x, y: np.lexsort((x, y)), [V, J]),
        (lambda np, x: np.lexsort(x), [I]),
        (lambda np, x: np.sort_complex(x), [complexes(9)]),
        (lambda np, s, x: np.searchsorted(s, x, side="right"), [S, A]),
        (lambda np, x, s: np.digitize(x, s), [A, S]),
        (lambda np, x, y: np.isin(x, y), [I, J]),
        (lambda np, x, y: np.isin(x, y, invert=True), [I, J]),
    ],
    "histograms": [
        (lambda np, x: np.histogram(x, bins=5), [A]),
        (lambda np, x: np.histogram(x, bins=4, range=(-2, 2)), [A]),
        (lambda np, x, s: np.histogram(x, bins=s), [A, S]),
        (lambda np, x, y: np.histogram(x, bins=3, weights=y), [V, V]),
        (lambda np, x: np.histogram(x, bins=4, density=True), [A]),
        (lambda np, x, y: np.histogram2d(x, y, bins=(3, 4)), [V, V[::-1].copy()]),
        (lambda np, x: np.histogramdd(x, bins=(2, 3)), [real(20, 2)]),
        (lambda np, x: np.histogram_bin_edges(x, 7), [A]),
    ],
    "polynomials": [
        (lambda np, p, x: np.polyval(p, x), [W, A]),
        (lambda np, x, y: np.polyadd(x, y), [V, W]),
        (lambda np, x, y: np.polysub(x, y), [W, V]),
        (lambda np, x, y: np.polymul(x, y), [V, W]),
        (lambda np, x: np.polyder(x, 2), [V]),
        (lambda np, x: np.polyint(x, 2, [3, 4]), [V]),
        (lambda np, x, y: np.polyfit(x, y, 2), [V, real(8)]),
        (lambda np, x, y: np.polyfit(x, y, 1), [V, real(8, 3)]),
    ],
    "linalg": [
        (lambda np, x: np.linalg.norm(x), [C]),
        (lambda np, x: np.linalg.norm(x, axis=1), [A]),
        (lambda np, x: np.linalg.norm(x, ord=1, axis=(0, 2), keepdims=True), [C]),
        (lambda np, x: np.linalg.norm(x, ord=3), [V]),
        (lambda np, x, y, z: np.linalg.multi_dot([x, y, z]), [A, real(6, 2), real(2)]),
        (
            lambda np, x, y: np.linalg.tensorsolve(x, y),
            [real(2, 3, 6) + numpy.eye(6, dtype="float32").reshape(2, 3, 6) * 5, real(2, 3)],
        ),
        (lambda np, x: np.linalg.tensorinv(x), [real(2, 3, 6) + numpy.eye(6, dtype="float32").reshape(2, 3, 6) * 5]),
        (lambda np, x: np.linalg.solve(x, x[:, 0]), [SQUARE]),
        (lambda np, x: np.linalg.svd(x, compute_uv=False), [A]),
        (lambda np, x: np.linalg.matrix_rank(x), [A]),
        (lambda np, x: np.linalg.pinv(x), [A]),
    ],
}

# Their results depend on the elements or on nothing.
EAGER = [
    (lambda np, x: np.unique(x, return_index=True, return_inverse=True, return_counts=True), [J]),
    (lambda np, x: np.unique(x, axis=0), [whole(6, 2, low=0, high=2)]),
    (lambda np, x, y: np.union1d(x, y), [I, J]),
    (lambda np, x, y: np.intersect1d(x, y, return_indices=True), [I, J]),
    (lambda np, x, y: np.setdiff1d(x, y), [I, J]),
    (lambda np, x, y: np.setxor1d(x, y), [I, J]),
    (lambda np, x: np.bincount(x, minlength=9), [J]),
    (lambda np, x, w: np.bincount(x, w), [J, V]),
    (lambda np, x: np.nonzero(x), [I]),
    (lambda np, x: np.argwhere(x), [I]),
    (lambda np, x: np.flatnonzero(x), [I]),
    (lambda np, m, x: np.extract(m, x), [MASK, A]),
    (lambda np, x: np.compress([True, False, True], x, axis=0), [C]),
    (lambda np, x: np.trim_zeros(x), [numpy.array([0, 0, 1, 0, 2, 0], "float32")]),
    (lambda np, x: np.where(x > 0), [A]),
    (lambda np, x: np.ix_(x, [0, 2]), [J]),
    (lambda np, x: np.delete(x, x > 0), [V]),
    (lambda np: np.linspace(0, 1, 7, retstep=True), []),
    (lambda np: np.logspace(0, 2, 5), []),
    (lambda np: np.geomspace(1, 64, 4), []),
    (lambda np: np.identity(3), []),
    (lambda np: np.indices((2, 3)), []),
    (lambda np: np.indices((2, 3), sparse=True), []),
    (lambda np: np.fromfunction(lambda i, j: i + 2 * j, (3, 2)), []),
    (lambda np: np.tril_indices(4, -1), []),
    (lambda np: np.triu_indices(3, m=5), []),
    (lambda np: np.full((2, 3), [1, 2, 3]), []),
    (lambda np: np.array([[1, 2], [3, 4]]), []),
    (lambda np: np.arange(2, 9, 3), []),
    (lambda np: np.isscalar(3), []),
]


def arrays(made):
    """The arrays of a result, which may be nested."""
    return [leaf for each in made for leaf in arrays(each)] if isinstance(made, tuple | list) else [numpy.asarray(made)]


def check(got, wanted):
    got, wanted = arrays(got), arrays(wanted)
    assert [each.shape for each in got] == [each.shape for each in wanted]
    for ours, theirs in zip(got, wanted, strict=True):
        assert (ours.dtype.kind in "iu") == (theirs.dtype.kind in "iu"), (ours.dtype, theirs.dtype)
        scale = (
            max(1.0, float(numpy.abs(theirs[numpy.isfinite(theirs)]).max(initial=0)))
            if theirs.dtype.kind in "fc"
            else 0
        )
        numpy.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5 * scale)


def wide(values):
    """NumPy computes in double precision."""
    kinds = {"f": "float64", "c": "complex128"}
    return [value.astype(kinds.get(value.dtype.kind, value.dtype)) for value in values]


EXACT = ("spacing", "frexp", "left_shift", "invert")  # depend on the dtype


@pytest.mark.parametrize("family", EXPRESSIONS)
def test_expressions_give_what_numpy_gives(family):
    mesh = ms.Mesh({"x": 2, "y": 2})
    for number, (expression, values) in enumerate(EXPRESSIONS[family]):
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            names = expression.__code__.co_names
            wanted = expression(numpy, *(values if any(name in EXACT for name in names) else wide(values)))
        try:
            check(expression(mnp, *map(ms.asarray, values)), wanted)
            marked = [
                ms.mark_sharding(value, mesh, ms.P("x") if value.ndim and value.shape[0] % 2 == 0 else ms.P())
                for value in map(ms.asarray, values)
            ]
            if number % 5 == 0:  # compiling takes time
                check(ms.jit(lambda *given, f=expression: f(mnp, *given))(*marked), wanted)
        except Exception as error:
            raise AssertionError(f"{family} {number}, {names}: {error}") from error


@pytest.mark.parametrize("number", range(len(EAGER)))
def test_what_reads_its_elements_gives_what_numpy_gives(number):
    expression, values = EAGER[number]
    check(expression(mnp, *map(ms.asarray, values)), expression(numpy, *values))


def test_names_that_are_missing_are_errors_with_near_ones():
    with pytest.raises(AttributeError, match="'concatenat'; near names: concatenate"):
        mnp.concatenat  # noqa: B018
    assert "numpy" not in dir(mnp) and "ops" not in dir(mnp)


def test_wrong_arguments_are_errors():
    x = ms.asarray(A)
    for call, words in [
        (lambda: mnp.split(x, 4, axis=1), "6 of dimension 1 does not divide into 4"),
        (lambda: mnp.pad(x, 1, "mean"), "unknown mode 'mean'"),
        (lambda: mnp.quantile(x, 0.5, method="median"), "unknown method 'median'"),
        (lambda: mnp.where(x > 0, x), "both x and y"),
        (lambda: mnp.insert(x, 9, 0.0, axis=0), "the index 9 of insert"),
        (lambda: mnp.convolve(V, W, "all"), "unknown mode 'all'"),
        (lambda: ms.jit(lambda v: mnp.bincount(v))(ms.asarray(J)), "pass length="),
    ]:
        with pytest.raises(Exception, match=words):
            call()


def test_gradients_pass_through_quantiles_and_interpolation():
    x = ms.asarray(V)
    gradient = ms.grad(
        lambda v: mnp.median(v) + mnp.interp(0.3, S, mnp.sort(v)[:1] + numpy.arange(9, dtype="float32"))
    )(x)
    assert float(mnp.sum(gradient)) == pytest.approx(2.0, abs=1e-5)
