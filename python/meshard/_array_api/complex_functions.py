"""Functions of complex numbers, with the special cases of the standard. Real numbers go to the ops.

The inverse functions use the formulas of W. Kahan, "Branch Cuts for Complex Elementary Functions" (1987), which keep
the branch cuts and do not cancel.
"""

import math

from .common import COMPLEX, Tensor, ops


def _is_complex(x):
    return isinstance(x, Tensor) and x.dtype in COMPLEX


def _parts(x):
    return ops.real(x), ops.imag(x)


def _either(a, b):
    return ops.logical_or(a, b)


def _both(a, b):
    return ops.logical_and(a, b)


def _is_unbounded(im):
    """True for angles without a direction: infinities and NaN."""
    return ops.logical_not(ops.isfinite(im))


# --- exponentials, logarithms and roots ----------------------------------------------------------


def exp(x, /):
    """e to the power x."""
    if not _is_complex(x):
        return ops.exp(x)
    re, im = _parts(x)
    end = ops.complex(ops.where(re < 0, 0.0, re), ops.where(re < 0, ops.zeros_like(re), math.nan))
    return ops.where(_both(ops.isinf(re), _is_unbounded(im)), end, ops.exp(x))


def expm1(x, /):
    """e to the power x, minus 1, accurate for small x."""
    if not _is_complex(x):
        return ops.expm1(x)
    re, im = _parts(x)
    end = ops.complex(ops.where(re < 0, -1.0, re), ops.where(re < 0, ops.zeros_like(re), math.nan))
    return ops.where(_both(ops.isinf(re), _is_unbounded(im)), end, ops.expm1(x))


def _infinite_logarithm(x, result):
    re, im = _parts(x)
    magnitude, angle = _parts(result)
    return ops.complex(ops.where(_either(ops.isinf(re), ops.isinf(im)), math.inf, magnitude), angle)


def log(x, /):
    """The natural logarithm."""
    return _infinite_logarithm(x, ops.log(x)) if _is_complex(x) else ops.log(x)


def log1p(x, /):
    """The natural logarithm of 1 + x, accurate for small x."""
    return _infinite_logarithm(x, ops.log1p(x)) if _is_complex(x) else ops.log1p(x)


def sqrt(x, /):
    """The square root; of complex numbers the one whose real part is not negative."""
    if not _is_complex(x):
        return ops.sqrt(x)
    re, im = _parts(x)
    end = ops.complex(ops.where(re > 0, re, math.nan), ops.where(re > 0, im, -re))
    return ops.where(_both(ops.isinf(re), ops.isnan(im)), end, ops.sqrt(x))


# --- hyperbolic functions ------------------------------------------------------------------------


def sinh(x, /):
    """The hyperbolic sine."""
    if not _is_complex(x):
        return ops.sinh(x)
    re, im = _parts(x)
    real = ops.where(_both(_is_unbounded(im), _either(ops.equal(re, 0), ops.isinf(re))), re, ops.sinh(re) * ops.cos(im))
    return ops.complex(real, ops.where(ops.equal(im, 0), im, ops.cosh(re) * ops.sin(im)))


def cosh(x, /):
    """The hyperbolic cosine."""
    if not _is_complex(x):
        return ops.cosh(x)
    re, im = _parts(x)
    real = ops.where(_both(_is_unbounded(im), ops.isinf(re)), ops.abs(re), ops.cosh(re) * ops.cos(im))
    is_real = _either(ops.equal(im, 0), _both(ops.equal(re, 0), _is_unbounded(im)))
    return ops.complex(real, ops.where(is_real, ops.copysign(0.0, im), ops.sinh(re) * ops.sin(im)))


def tanh(x, /):
    """The hyperbolic tangent."""
    if not _is_complex(x):
        return ops.tanh(x)
    re, im = _parts(x)
    # Beyond this magnitude the real part is 1 in all dtypes, and the formula of the op may overflow.
    is_far = ops.greater(ops.abs(re), 22.0)
    result = ops.tanh(ops.complex(ops.where(is_far, ops.zeros_like(re), re), im))
    real, imag = _parts(result)
    unbounded = _is_unbounded(im)
    is_nan = _both(unbounded, ops.isfinite(re))
    real = ops.where(is_far, ops.sign(re), real)
    imag = ops.where(is_far, ops.copysign(0.0, im), imag)
    return ops.complex(ops.where(is_nan, ops.where(ops.equal(re, 0), re, math.nan), real),
                       ops.where(is_nan, math.nan, imag))


# --- inverse functions ---------------------------------------------------------------------------


def _sqrt_parts(re, im):
    """The parts (real, imaginary) of the square root."""
    magnitude = ops.hypot(re, im)
    # Half of the operands, so that the sum does not overflow; the larger part first, so that nothing cancels.
    larger = ops.sqrt(0.5 * magnitude + 0.5 * ops.abs(re))
    smaller = ops.where(ops.equal(larger, 0), ops.zeros_like(larger), 0.5 * ops.abs(im) / larger)
    is_right = ops.greater_equal(re, 0)
    return ops.where(is_right, larger, smaller), ops.copysign(ops.where(is_right, smaller, larger), im)


def _one(re):
    """1 for an infinite number, otherwise 0; NaN stays NaN."""
    return ops.where(ops.isnan(re), re, ops.where(ops.isinf(re), ops.ones_like(re), 0.0))


def _acos_parts(x):
    re, im = _parts(x)
    (a, b), (c, d) = _sqrt_parts(1 - re, -im), _sqrt_parts(1 + re, im)
    real, imag = 2 * ops.atan2(a, c), ops.asinh(c * b - d * a)
    is_infinite = _either(ops.isinf(re), ops.isinf(im))
    far = ops.atan2(_one(im), ops.copysign(_one(re), re))  # the angle of a point at infinity
    real = ops.where(is_infinite, far, ops.where(_both(ops.equal(re, 0), ops.isnan(im)), math.pi / 2, real))
    return real, ops.where(is_infinite, ops.copysign(math.inf, -im), imag)


def acos(x, /):
    """The arc cosine."""
    return ops.complex(*_acos_parts(x)) if _is_complex(x) else ops.acos(x)


def acosh(x, /):
    """The inverse hyperbolic cosine."""
    if not _is_complex(x):
        return ops.acosh(x)
    real, imag = _acos_parts(x)  # acosh(x) is i acos(x) or -i acos(x)
    return ops.complex(ops.abs(imag), ops.copysign(real, ops.imag(x)))


def _asinh_parts(re, im):
    (a, b), (c, d) = _sqrt_parts(1 + im, -re), _sqrt_parts(1 - im, re)  # of 1 - ix and 1 + ix
    real, imag = ops.asinh(a * d - b * c), ops.atan2(im, a * c - b * d)
    is_infinite = _either(ops.isinf(re), ops.isinf(im))
    far = ops.atan2(ops.copysign(_one(im), im), _one(re))
    imag = ops.where(is_infinite, far, ops.where(ops.equal(im, 0), im, imag))
    return ops.where(is_infinite, ops.copysign(math.inf, re), real), imag


def asinh(x, /):
    """The inverse hyperbolic sine."""
    return ops.complex(*_asinh_parts(*_parts(x))) if _is_complex(x) else ops.asinh(x)


def asin(x, /):
    """The arc sine."""
    if not _is_complex(x):
        return ops.asin(x)
    re, im = _parts(x)
    real, imag = _asinh_parts(-im, re)  # asin(x) = -i asinh(ix)
    return ops.complex(imag, -real)


def _atanh_parts(re, im):
    near = ops.abs(re)  # the function is odd in the real part
    gap = 1 - near
    real = ops.copysign(0.25 * ops.log1p(4 * near / (ops.square(gap) + ops.square(im))), re)
    imag = 0.5 * ops.atan2(2 * im, gap * (1 + near) - ops.square(im))
    is_infinite = _either(ops.isinf(re), ops.isinf(im))
    right_angle = ops.where(ops.isnan(im), im, ops.copysign(math.pi / 2, im))
    real = ops.where(_either(is_infinite, ops.equal(re, 0)), ops.copysign(0.0, re), real)
    return real, ops.where(is_infinite, right_angle, imag)


def atanh(x, /):
    """The inverse hyperbolic tangent."""
    return ops.complex(*_atanh_parts(*_parts(x))) if _is_complex(x) else ops.atanh(x)


def atan(x, /):
    """The arc tangent."""
    if not _is_complex(x):
        return ops.atan(x)
    re, im = _parts(x)
    real, imag = _atanh_parts(-im, re)  # atan(x) = -i atanh(ix)
    return ops.complex(imag, -real)


def sign(x, /):
    """-1, 0 or 1; for complex numbers x / abs(x). Zeros, also negative ones, give 0."""
    if not isinstance(x, Tensor) or x.dtype.kind in "iu":
        return ops.sign(x)
    result = x / ops.abs(x) if x.dtype in COMPLEX else ops.sign(x)
    return ops.where(ops.equal(x, 0), ops.zeros_like(x), result)
