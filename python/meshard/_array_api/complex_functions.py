"""Functions whose ops take real numbers, for complex numbers too.

The inverse functions use the formulas of W. Kahan, "Branch Cuts for Complex Elementary Functions" (1987), which keep
the branch cuts and do not cancel.
"""

from .common import COMPLEX, Tensor, ops


def _is_complex(x):
    return isinstance(x, Tensor) and x.dtype in COMPLEX


def _times_i(x):
    return ops.complex(-ops.imag(x), ops.real(x))


def _times_minus_i(x):
    return ops.complex(ops.imag(x), -ops.real(x))


def _roots(x):
    """The square roots of 1 - x and 1 + x, with the sign of zero of the imaginary part."""
    re, im = ops.real(x), ops.imag(x)
    return _sqrt(1 - re, -im), _sqrt(1 + re, im)


def _sqrt(re, im):
    """The parts (real, imaginary) of the square root, by which the formulas below are made of real numbers."""
    magnitude = ops.hypot(re, im)
    # Half of the operands, so that the sum does not overflow; the larger part first, so that nothing cancels.
    larger = ops.sqrt(0.5 * magnitude + 0.5 * ops.abs(re))
    smaller = ops.where(ops.equal(larger, 0), ops.zeros_like(larger), ops.abs(im) / (2 * larger))
    is_right = ops.greater_equal(re, 0)
    return ops.where(is_right, larger, smaller), ops.copysign(ops.where(is_right, smaller, larger), im)


def asin(x, /):
    """The arc sine."""
    if not _is_complex(x):
        return ops.asin(x)
    (a, b), (c, d) = _roots(x)
    # a + bi = sqrt(1 - x), c + di = sqrt(1 + x)
    return ops.complex(ops.atan2(ops.real(x), a * c - b * d), ops.asinh(a * d - b * c))


def acos(x, /):
    """The arc cosine."""
    if not _is_complex(x):
        return ops.acos(x)
    (a, b), (c, d) = _roots(x)
    return ops.complex(2 * ops.atan2(a, c), ops.asinh(c * b - d * a))


def acosh(x, /):
    """The inverse hyperbolic cosine."""
    if not _is_complex(x):
        return ops.acosh(x)
    re, im = ops.real(x), ops.imag(x)
    (a, b), (c, d) = _sqrt(re - 1, im), _sqrt(re + 1, im)
    return ops.complex(ops.asinh(a * c + b * d), 2 * ops.atan2(b, c))


def asinh(x, /):
    """The inverse hyperbolic sine."""
    return _times_minus_i(asin(_times_i(x))) if _is_complex(x) else ops.asinh(x)


def atanh(x, /):
    """The inverse hyperbolic tangent."""
    if not _is_complex(x):
        return ops.atanh(x)
    re, im = ops.real(x), ops.imag(x)
    near = ops.abs(re)  # the function is odd in the real part
    gap = 1 - near
    real = 0.25 * ops.log1p(4 * near / (ops.square(gap) + ops.square(im)))
    imag = 0.5 * ops.atan2(2 * im, gap * (1 + near) - ops.square(im))
    return ops.complex(ops.copysign(real, re), imag)


def atan(x, /):
    """The arc tangent."""
    return _times_minus_i(atanh(_times_i(x))) if _is_complex(x) else ops.atan(x)


def sinh(x, /):
    """The hyperbolic sine."""
    if not _is_complex(x):
        return ops.sinh(x)
    re, im = ops.real(x), ops.imag(x)
    return ops.complex(ops.sinh(re) * ops.cos(im), _without_nan(ops.cosh(re), ops.sin(im), im))


def cosh(x, /):
    """The hyperbolic cosine."""
    if not _is_complex(x):
        return ops.cosh(x)
    re, im = ops.real(x), ops.imag(x)
    return ops.complex(ops.cosh(re) * ops.cos(im), _without_nan(ops.sinh(re), ops.sin(im), im))


def _without_nan(factor, sine, im):
    """factor * sine, but zero for a real argument, whose factor may be infinite."""
    return ops.where(ops.equal(im, 0), im, factor * sine)


def sign(x, /):
    """-1, 0 or 1; for complex numbers x / abs(x), and 0 for 0."""
    if not _is_complex(x):
        return ops.sign(x)
    magnitude = ops.abs(x)
    return ops.where(ops.equal(magnitude, 0), ops.zeros_like(x), x / magnitude)
