"""Element-wise functions that the array API does not have, products, and differences."""

import math

import numpy

from .._array_api import linear_algebra
from .._array_api.common import axes_of, ops
from .._array_api.creation import as_tensor
from .._array_api.data_types import finfo, result_type
from .._array_api.linear_algebra import vecdot
from ._creation import floating
from ._reductions import all
from ._shapes import diagonal, nonzero

__all__ = ["allclose", "angle", "around", "array_equal", "array_equiv", "bitwise_count", "bitwise_invert",
           "bitwise_left_shift", "bitwise_not", "bitwise_right_shift", "choose", "clip", "convolve", "correlate",
           "cross", "deg2rad", "degrees", "diff", "divmod", "dot", "ediff1d", "fabs", "fix", "float_power", "fmax",
           "fmin", "frexp", "gcd", "gradient", "heaviside", "inner", "interp", "invert", "isclose", "iscomplex",
           "iscomplexobj", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "kron", "lcm", "ldexp",
           "left_shift", "logaddexp2", "modf", "nan_to_num", "outer", "piecewise", "rad2deg", "radians", "right_shift",
           "rint", "round", "select", "sinc", "spacing", "tensordot", "trace", "trapezoid", "unwrap", "vdot", "vecdot",
           "where"]


def _both(a, b):
    """Two tensors in their common dtype."""
    dtype = result_type(as_tensor(a), as_tensor(b))
    return ops.astype(as_tensor(a), dtype), ops.astype(as_tensor(b), dtype)


# --- rounding and parts ------------------------------------------------------------------------


def round(a, decimals=0):
    """The nearest numbers with `decimals` digits, of two equally near ones that with an even last digit."""
    a = as_tensor(a)
    if a.dtype.kind in "biu":
        if decimals >= 0:
            return a
        unit = 10 ** -decimals
        return ops.astype(ops.round(ops.astype(a, "float64") / unit), a.dtype) * unit
    if a.dtype.kind == "c":
        return ops.complex(round(ops.real(a), decimals), round(ops.imag(a), decimals))
    if decimals == 0:
        return ops.round(a)
    return ops.round(a * 10.0 ** decimals) / 10.0 ** decimals if decimals > 0 else \
        ops.round(a / 10.0 ** -decimals) * 10.0 ** -decimals


around = round


def rint(x):
    """The nearest integers, as floats."""
    return round(floating(x))


def fix(x):
    """The integers next to the numbers, towards zero."""
    return ops.trunc(floating(x))


def modf(x):
    """The fractions and the integers of numbers, both with their sign."""
    x = floating(x)
    whole = ops.trunc(x)
    fraction = ops.where(ops.isinf(x), ops.zeros_like(x, None), x - whole)
    return ops.copysign(fraction, x), whole


def frexp(x):
    """Mantissas of at least 0.5 and below 1, and exponents of 2. Subnormal numbers are left as they are, with 0."""
    x = floating(x)
    bits = ops.bitcast_convert(ops.astype(x, "float64"), "int64")
    biased = ops.bitwise_and(ops.bitwise_right_shift(bits, 52), 0x7FF)
    plain = ops.logical_or(ops.equal(biased, 0), ops.equal(biased, 0x7FF))
    sign_and_digits = ops.bitwise_and(bits, as_tensor(numpy.int64(~(0x7FF << 52))))
    mantissa = ops.bitcast_convert(ops.bitwise_or(sign_and_digits, as_tensor(numpy.int64(1022 << 52))), "float64")
    exponent = ops.where(plain, ops.zeros_like(biased, None), biased - 1022)
    return ops.where(plain, x, ops.astype(mantissa, x.dtype)), ops.astype(exponent, "int32")


def ldexp(x1, x2):
    """x1 * 2**x2, in two steps, so that the power itself does not overflow."""
    x1, x2 = floating(x1), as_tensor(x2)
    half = ops.floor_divide(x2, 2)
    return x1 * ops.exp2(ops.astype(half, x1.dtype)) * ops.exp2(ops.astype(x2 - half, x1.dtype))


def spacing(x):
    """The distance to the next number away from zero, with the sign of x."""
    x = floating(x)
    away = ops.copysign(ops.full((), math.inf, x.dtype), x)
    return ops.nextafter(x, away) - x


def divmod(x1, x2):
    """The floor of the quotient, and the remainder."""
    x1, x2 = _both(x1, x2)
    return ops.floor_divide(x1, x2), ops.remainder(x1, x2)


def gcd(x1, x2):
    """The greatest common divisor of integers."""
    from .._transforms import while_loop
    x1, x2 = _both(x1, x2)
    if x1.dtype.kind not in "iu":
        raise TypeError(f"gcd takes integers, not {x1.dtype}")
    x1, x2 = ops.broadcast_arrays([ops.abs(x1) if x1.dtype.kind == "i" else x1,
                                   ops.abs(x2) if x2.dtype.kind == "i" else x2])
    zero = ops.zeros((), x1.dtype)

    def step(state):
        a, b = state
        done = ops.equal(b, zero)
        rest = ops.remainder(a, ops.where(done, ops.ones((), a.dtype), b))
        return ops.where(done, a, b), ops.where(done, zero, rest)

    return while_loop(lambda state: ops.any(ops.not_equal(state[1], zero), None, False), step, (x1, x2))[0]


def lcm(x1, x2):
    """The least common multiple of integers."""
    x1, x2 = _both(x1, x2)
    divisor = gcd(x1, x2)
    none = ops.equal(divisor, 0)
    made = ops.floor_divide(x1, ops.where(none, ops.ones((), x1.dtype), divisor)) * x2
    return ops.abs(made) if made.dtype.kind == "i" else made


# --- signs, extremes, comparisons --------------------------------------------------------------


def clip(a, a_min=None, a_max=None, *, min=None, max=None):
    """The elements, at least a_min and at most a_max."""
    low, high = a_min if min is None else min, a_max if max is None else max
    a = as_tensor(a)
    for bound, op in ((low, ops.maximum), (high, ops.minimum)):
        a = a if bound is None else op(a, bound)
    return a


def fabs(x):
    """The absolute values, as floats."""
    return ops.abs(floating(x))


def fmax(x1, x2):
    """The larger of two numbers; of NaN and a number the number."""
    x1, x2 = _both(x1, x2)
    if x1.dtype.kind in "biu":
        return ops.maximum(x1, x2)
    return ops.where(ops.isnan(x1), x2, ops.where(ops.isnan(x2), x1, ops.maximum(x1, x2)))


def fmin(x1, x2):
    """The smaller of two numbers; of NaN and a number the number."""
    x1, x2 = _both(x1, x2)
    if x1.dtype.kind in "biu":
        return ops.minimum(x1, x2)
    return ops.where(ops.isnan(x1), x2, ops.where(ops.isnan(x2), x1, ops.minimum(x1, x2)))


def heaviside(x1, x2):
    """0 for negative numbers, 1 for positive ones, x2 for 0."""
    x1, x2 = _both(floating(x1), floating(x2))
    made = ops.where(ops.less(x1, 0), ops.zeros((), x1.dtype), ops.ones((), x1.dtype))
    made = ops.where(ops.equal(x1, 0), x2, made)
    return ops.where(ops.isnan(x1), x1, made)


def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether abs(a - b) <= atol + rtol * abs(b)."""
    a, b = _both(floating(a), floating(b))
    finite = ops.logical_and(ops.isfinite(a), ops.isfinite(b))
    near = ops.less_equal(ops.abs(a - b), atol + rtol * ops.abs(b))
    made = ops.where(finite, near, ops.equal(a, b))
    return ops.logical_or(made, ops.logical_and(ops.isnan(a), ops.isnan(b))) if equal_nan else made


def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether all elements are close: isclose()."""
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1, a2, equal_nan=False):
    """Whether two arrays have one shape and equal elements."""
    a1, a2 = as_tensor(a1), as_tensor(a2)
    if a1.shape != a2.shape:
        return as_tensor(False)
    same = ops.equal(*_both(a1, a2))
    if equal_nan and a1.dtype.kind in "fc" and a2.dtype.kind in "fc":
        same = ops.logical_or(same, ops.logical_and(ops.isnan(a1), ops.isnan(a2)))
    return all(same)


def array_equiv(a1, a2):
    """Whether two arrays broadcast to one shape with equal elements."""
    a1, a2 = as_tensor(a1), as_tensor(a2)
    try:
        numpy.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return as_tensor(False)
    return all(ops.equal(*_both(a1, a2)))


def isposinf(x):
    """Where the elements are infinity."""
    return ops.equal(floating(x), math.inf)


def isneginf(x):
    """Where the elements are minus infinity."""
    return ops.equal(floating(x), -math.inf)


def isreal(x):
    """Where the imaginary part is 0."""
    x = as_tensor(x)
    return ops.equal(ops.imag(x), 0) if x.dtype.kind == "c" else ops.full(x.shape, True, "bool")


def iscomplex(x):
    """Where the imaginary part is not 0."""
    return ops.logical_not(isreal(x))


def iscomplexobj(x):
    """Whether the dtype is complex."""
    return as_tensor(x).dtype.kind == "c"


def isrealobj(x):
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


def isscalar(element):
    """Whether it is a number, not an array."""
    return numpy.isscalar(element)


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """NaN as 0, and infinities as the largest numbers of the dtype, or as the given ones."""
    x = as_tensor(x)
    if x.dtype.kind in "biu":
        return x
    if x.dtype.kind == "c":
        return ops.complex(*(nan_to_num(part, copy, nan, posinf, neginf) for part in (ops.real(x), ops.imag(x))))
    most = float(finfo(x.dtype).max)
    x = ops.where(ops.isnan(x), ops.full((), nan, x.dtype), x)
    x = ops.where(ops.equal(x, math.inf), ops.full((), most if posinf is None else posinf, x.dtype), x)
    return ops.where(ops.equal(x, -math.inf), ops.full((), -most if neginf is None else neginf, x.dtype), x)


# --- bits --------------------------------------------------------------------------------------

bitwise_left_shift = left_shift = ops.bitwise_left_shift
bitwise_right_shift = right_shift = ops.bitwise_right_shift
bitwise_not = invert = bitwise_invert = ops.bitwise_invert


def bitwise_count(x):
    """The number of bits that are 1 in the absolute value, as uint8."""
    x = as_tensor(x)
    return ops.astype(ops.popcnt(ops.abs(x) if x.dtype.kind == "i" else x), "uint8")


# --- angles, exponentials ----------------------------------------------------------------------


def deg2rad(x):
    """Degrees as radians."""
    return floating(x) * (math.pi / 180)


def rad2deg(x):
    """Radians as degrees."""
    return floating(x) * (180 / math.pi)


radians, degrees = deg2rad, rad2deg


def angle(z, deg=False):
    """The angles of complex numbers."""
    z = floating(z)
    imaginary = ops.imag(z) if z.dtype.kind == "c" else ops.zeros_like(z, None)
    made = ops.atan2(imaginary, ops.real(z) if z.dtype.kind == "c" else z)
    return rad2deg(made) if deg else made


def sinc(x):
    """sin(pi x) / (pi x), and 1 at 0."""
    x = floating(x) * math.pi
    zero = ops.equal(x, 0)
    x = ops.where(zero, ops.ones((), x.dtype), x)
    return ops.where(zero, ops.ones((), x.dtype), ops.sin(x) / x)


def logaddexp2(x1, x2):
    """log2(2**x1 + 2**x2)."""
    x1, x2 = _both(floating(x1), floating(x2))
    return ops.logaddexp(x1 * math.log(2), x2 * math.log(2)) / math.log(2)


def float_power(x1, x2):
    """The powers in float64, or complex128."""
    x1, x2 = as_tensor(x1), as_tensor(x2)
    dtype = "complex128" if "c" in (x1.dtype.kind, x2.dtype.kind) else "float64"
    return ops.pow(ops.astype(x1, dtype), ops.astype(x2, dtype))


# --- choosing ----------------------------------------------------------------------------------


def where(condition, x=None, y=None):
    """The elements of x where the condition is true, otherwise those of y; `nonzero` of the condition alone."""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("where takes the condition alone, or with both x and y")
    return ops.where(as_tensor(condition), x, y)


def select(condlist, choicelist, default=0):
    """The elements of the choice whose condition is the first that is true, otherwise `default`."""
    if len(condlist) != len(choicelist):
        raise ValueError(f"select has {len(condlist)} conditions for {len(choicelist)} choices")
    made = as_tensor(default)
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        made = where(condition, *_both(choice, made))
    return made


def choose(a, choices):
    """The elements of the choice with the number that `a` has there."""
    a = as_tensor(a)
    parts = [as_tensor(each) for each in choices]
    shape = numpy.broadcast_shapes(a.shape, *(each.shape for each in parts))
    stacked = ops.stack([ops.broadcast_to(each, shape) for each in parts], 0)
    return ops.squeeze(ops.take_along_axis(stacked, ops.expand_dims(ops.broadcast_to(a, shape), 0), 0), (0,))


def piecewise(x, condlist, funclist, *args, **kw):
    """The function, or number, of the last condition that is true; the one more function is for the rest, else 0."""
    x = as_tensor(x)
    conditions = [as_tensor(each) for each in (condlist if isinstance(condlist, list | tuple) else [condlist])]
    if len(funclist) == len(conditions):
        funclist = [*funclist, 0]
    elif len(funclist) != len(conditions) + 1:
        raise ValueError(f"piecewise has {len(funclist)} functions for {len(conditions)} conditions")
    values = [each(x, *args, **kw) if callable(each) else each for each in funclist]
    made = ops.broadcast_to(ops.astype(as_tensor(values[-1]), x.dtype), x.shape)
    for condition, value in zip(conditions, values[:-1], strict=True):
        made = ops.where(condition, ops.astype(as_tensor(value), x.dtype), made)
    return made


# --- products ----------------------------------------------------------------------------------


def dot(a, b):
    """The product of numbers, vectors or matrices: sums over the last dimension of a and the second last of b."""
    a, b = _both(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return ops.tensordot(a, b, (a.ndim - 1,), (b.ndim - 2 if b.ndim > 1 else 0,))


def vdot(a, b):
    """The sum of conj(a) * b over all elements."""
    a, b = _both(a, b)
    return ops.sum(ops.conj(ops.flatten(a)) * ops.flatten(b), None, False)


def inner(a, b):
    """The sums of products over the last dimension of both."""
    a, b = _both(a, b)
    return a * b if a.ndim == 0 or b.ndim == 0 else ops.tensordot(a, b, (a.ndim - 1,), (b.ndim - 1,))


def outer(a, b):
    """The product of each element of a with each of b, as a matrix."""
    a, b = _both(a, b)
    return ops.expand_dims(ops.flatten(a), 1) * ops.expand_dims(ops.flatten(b), 0)


def kron(a, b):
    """The Kronecker product: b times each element of a, in its place."""
    a, b = _both(a, b)
    rank = max(a.ndim, b.ndim)
    a = ops.reshape(a, (1,) * (rank - a.ndim) + tuple(a.shape))
    b = ops.reshape(b, (1,) * (rank - b.ndim) + tuple(b.shape))
    blocks = ops.reshape(a, tuple(n for size in a.shape for n in (size, 1)))
    inner = ops.reshape(b, tuple(n for size in b.shape for n in (1, size)))
    return ops.reshape(blocks * inner, tuple(m * n for m, n in zip(a.shape, b.shape, strict=True)))


def tensordot(a, b, axes=2):
    """The sum of products over dimensions: the last `axes` of a and first of b, or a pair of lists."""
    a, b = _both(a, b)
    if not isinstance(axes, int):
        axes = tuple((each,) if isinstance(each, int) else tuple(each) for each in axes)
    return linear_algebra.tensordot(a, b, axes=axes)


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The cross product of vectors of 3 elements, along dimensions of both."""
    from .. import linalg
    a, b = _both(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = ops.moveaxis(a, (axisa % a.ndim,), (a.ndim - 1,)), ops.moveaxis(b, (axisb % b.ndim,), (b.ndim - 1,))
    made = linalg.cross(a, b)
    return ops.moveaxis(made, (made.ndim - 1,), (axisc % made.ndim,))


def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    """The sum of a diagonal of two dimensions."""
    from ._reductions import sum
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype)


def convolve(a, v, mode="full"):
    """The convolution of two vectors: `"full"`, `"same"` or `"valid"`."""
    a, v = _both(a, v)
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    return _products(a, ops.flip(v, None), mode)


def correlate(a, v, mode="valid"):
    """The correlation of two vectors: the sums of a[n + k] * conj(v[n])."""
    a, v = _both(a, v)
    v = ops.conj(v)
    if a.shape[0] >= v.shape[0]:
        return _products(a, v, mode)
    return ops.flip(_products(v, a, mode), None)


def _products(a, v, mode):
    """The sums of products of v with the places of the longer a."""
    n = v.shape[0]
    pads = {"full": (n - 1, n - 1), "same": (n // 2, (n - 1) // 2), "valid": (0, 0)}
    if mode not in pads:
        raise ValueError(f"unknown mode {mode!r}: use 'full', 'same' or 'valid'")
    low, high = pads[mode]
    a = ops.pad(a, 0, (low,), (high,), ())
    count = a.shape[0] - n + 1
    places = ops.expand_dims(ops.arange(0, count, 1, "int32"), 1) + ops.arange(0, n, 1, "int32")
    return ops.sum(ops.take(a, places, 0) * v, 1, False)


# --- differences and curves --------------------------------------------------------------------


def diff(a, n=1, axis=-1, prepend=None, append=None):
    """The differences of neighbors along a dimension, taken n times."""
    a = as_tensor(a)
    ends = [each if each is None or as_tensor(each).ndim else ops.broadcast_to(
        ops.astype(as_tensor(each), a.dtype), tuple(1 if i == axis % a.ndim else s for i, s in enumerate(a.shape)))
        for each in (prepend, append)]
    return ops.diff(a, axis, n, *ends)


def ediff1d(ary, to_end=None, to_begin=None):
    """The differences of neighbors in row-major order, between numbers to begin and to end."""
    ary = as_tensor(ary)
    parts = [ops.diff(ops.flatten(ary), 0, 1, None, None)]
    if to_begin is not None:
        parts.insert(0, ops.astype(ops.flatten(as_tensor(to_begin)), ary.dtype))
    if to_end is not None:
        parts.append(ops.astype(ops.flatten(as_tensor(to_end)), ary.dtype))
    return ops.concat(parts, 0)


def gradient(f, *varargs, axis=None):
    """The central differences along each dimension, one-sided at the ends; a list if there are several.

    `varargs` are the distances of the samples, one number for all or one for each dimension, or their coordinates.
    """
    f = floating(f)
    axes = axes_of(axis, f.ndim)
    if len(varargs) == 0:
        distances = [1.0] * len(axes)
    elif len(varargs) == 1:
        distances = list(varargs) * len(axes)
    elif len(varargs) == len(axes):
        distances = list(varargs)
    else:
        raise TypeError(f"gradient has {len(varargs)} distances for {len(axes)} dimensions")
    made = [_gradient(f, one, by) for one, by in zip(axes, distances, strict=True)]
    return made[0] if len(made) == 1 else made


def _gradient(f, axis, distance):
    size = f.shape[axis]
    if size < 2:
        raise ValueError(f"gradient needs at least 2 elements along dimension {axis}, which has {size}")
    part = lambda first, last: f[(slice(None),) * axis + (slice(first, last),)]
    distance = as_tensor(distance)
    if distance.ndim == 0:
        middle = (part(2, None) - part(None, -2)) / (2 * distance)
        ends = (part(1, 2) - part(0, 1)) / distance, (part(-1, None) - part(-2, -1)) / distance
    else:
        steps = ops.diff(distance, 0, 1, None, None)
        shape = [-1 if i == axis else 1 for i in range(f.ndim)]
        step = lambda first, last: ops.reshape(steps[first:last], shape)
        before, behind = step(None, -1), step(1, None)
        middle = (part(2, None) * before / behind - part(None, -2) * behind / before) / (before + behind) + \
            part(1, -1) * (behind - before) / (before * behind)
        ends = (part(1, 2) - part(0, 1)) / step(0, 1), (part(-1, None) - part(-2, -1)) / step(-1, None)
    return ops.concat([ends[0], middle, ends[1]], axis)


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral along a dimension by trapezoids between samples at x, or dx apart."""
    y = floating(y)
    axis = axis % y.ndim
    part = lambda first, last: y[(slice(None),) * axis + (slice(first, last),)]
    if x is not None:
        x = as_tensor(x)
        dx = ops.diff(x, -1 if x.ndim == 1 else axis, 1, None, None)
        if x.ndim == 1:
            dx = ops.reshape(dx, [-1 if i == axis else 1 for i in range(y.ndim)])
    return ops.sum(dx * (part(1, None) + part(None, -1)) / 2, axis, False)


def unwrap(p, discont=None, axis=-1, period=2 * math.pi):
    """Angles without jumps: differences of neighbors of at least half a period (or `discont`) are reduced by it."""
    p = floating(p)
    axis = axis % p.ndim
    steps = ops.diff(p, axis, 1, None, None)
    half = period / 2
    reduced = ops.remainder(steps + half, ops.full((), period, p.dtype)) - half
    reduced = ops.where(ops.logical_and(ops.equal(reduced, -half), ops.greater(steps, 0)), as_tensor(half), reduced)
    jumps = ops.less(ops.abs(steps), half if discont is None else max(discont, half))
    correction = ops.where(jumps, ops.zeros((), p.dtype), ops.astype(reduced - steps, p.dtype))
    first = (slice(None),) * axis
    rest = p[(*first, slice(1, None))] + ops.cumulative_sum(correction, axis)
    return ops.concat([p[(*first, slice(0, 1))], rest], axis)


def interp(x, xp, fp, left=None, right=None, period=None):
    """The values at x of the curve through the points (xp, fp), which ascend; outside the first and the last one."""
    x, xp = _both(floating(x), floating(xp))
    fp = floating(fp)
    if period is not None:
        period = abs(period)
        x, xp = ops.remainder(x, period), ops.remainder(xp, period)
        order = ops.argsort(xp, 0)
        xp, fp = ops.take(xp, order, 0), ops.take(fp, order, 0)
        xp = ops.concat([xp[-1:] - period, xp, xp[:1] + period], 0)
        fp = ops.concat([fp[-1:], fp, fp[:1]], 0)
    right_of = ops.clip(ops.searchsorted(xp, ops.flatten(x), "right"), 1, max(xp.shape[0] - 1, 1))
    left_of = ops.reshape(right_of - 1, x.shape)
    right_of = ops.minimum(ops.reshape(right_of, x.shape), xp.shape[0] - 1)
    x0, x1, f0, f1 = (ops.take(each, at, 0) for each in (xp, fp) for at in (left_of, right_of))
    gap = x1 - x0
    flat = ops.equal(gap, 0)
    part = (x - x0) / ops.where(flat, ops.ones((), gap.dtype), gap)
    made = ops.where(flat, f0, f0 + part * (f1 - f0))
    if period is None:
        made = ops.where(ops.less(x, xp[0]), fp[0] if left is None else left, made)
        made = ops.where(ops.greater(x, xp[-1]), fp[-1] if right is None else right, made)
    return ops.where(ops.isnan(x), x, made)
