"""Element-wise functions. Those with the semantics of the standard are the ops themselves."""

from .. import _meshard
from .common import COMPLEX, INTEGERS, Tensor, as_tensor, ops
from .complex_functions import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cosh,
    exp,
    expm1,
    log,
    log1p,
    sign,
    sinh,
    sqrt,
    tanh,
)

__all__ = ["abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
           "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign",
           "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal",
           "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2",
           "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
           "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "sign",
           "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc"]

abs, add, atan2, bitwise_and, bitwise_invert = ops.abs, ops.add, ops.atan2, ops.bitwise_and, ops.bitwise_invert
bitwise_left_shift, bitwise_or = ops.bitwise_left_shift, ops.bitwise_or
bitwise_right_shift, bitwise_xor = ops.bitwise_right_shift, ops.bitwise_xor
ceil, copysign, cos, divide, equal = ops.ceil, ops.copysign, ops.cos, ops.divide, ops.equal
conj, imag, real = ops.conj, ops.imag, ops.real
floor, greater, greater_equal, hypot = ops.floor, ops.greater, ops.greater_equal, ops.hypot
floor_divide, remainder = _meshard.floor_divide, _meshard.remainder
isfinite, isinf, isnan, less, less_equal = ops.isfinite, ops.isinf, ops.isnan, ops.less, ops.less_equal
log10, log2, logaddexp = ops.log10, ops.log2, ops.logaddexp
logical_and, logical_not, logical_or, logical_xor = ops.logical_and, ops.logical_not, ops.logical_or, ops.logical_xor
maximum, minimum, multiply, negative, nextafter = ops.maximum, ops.minimum, ops.multiply, ops.negative, ops.nextafter
not_equal, pow, reciprocal = ops.not_equal, ops.pow, ops.reciprocal
signbit, sin, square, subtract, tan, trunc = ops.signbit, ops.sin, ops.square, ops.subtract, ops.tan, ops.trunc


def positive(x, /):
    """The elements themselves."""
    return +as_tensor(x)


def round(x, /):
    """The nearest integers, of two equally near ones the even one; for complex numbers of both parts."""
    if isinstance(x, Tensor) and x.dtype in COMPLEX:
        return ops.complex(ops.round(ops.real(x)), ops.round(ops.imag(x)))
    return ops.round(x)


def clip(x, /, min=None, max=None):
    """The elements, at least `min` and at most `max`. The dtype is that of x.

    Where min is greater than max the result is max.
    """
    x = as_tensor(x)
    if min is None and max is None:
        return x[...]
    result = x
    for bound, op in ((min, ops.maximum), (max, ops.minimum)):
        if bound is not None:
            result = op(result, _bound_of(x, bound))
    return result if result.dtype == x.dtype else ops.astype(result, x.dtype)


def _bound_of(x, bound):
    # A number beyond the dtype bounds nothing on that side, and everything on the other.
    if isinstance(bound, Tensor):
        return bound
    if x.dtype in INTEGERS and isinstance(bound, int) and not isinstance(bound, bool):
        return sorted((_limits(x.dtype)[0], bound, _limits(x.dtype)[1]))[1]
    return bound


def _limits(dtype):
    from .data_types import iinfo

    limits = iinfo(dtype)
    return limits.min, limits.max
