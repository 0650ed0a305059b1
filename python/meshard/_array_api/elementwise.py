"""Element-wise functions. Those with the semantics of the standard are the ops themselves."""

from .. import _meshard
from .common import COMPLEX, Tensor, as_tensor, ops

__all__ = ["abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
           "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign",
           "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal",
           "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2",
           "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
           "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "sign",
           "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc"]

abs, add, atan2, bitwise_and, bitwise_invert = ops.abs, ops.add, ops.atan2, ops.bitwise_and, ops.bitwise_invert
acos, acosh, asin, asinh, atan, atanh = ops.acos, ops.acosh, ops.asin, ops.asinh, ops.atan, ops.atanh
bitwise_left_shift, bitwise_or = ops.bitwise_left_shift, ops.bitwise_or
bitwise_right_shift, bitwise_xor = ops.bitwise_right_shift, ops.bitwise_xor
ceil, copysign, cos, cosh, divide, equal = ops.ceil, ops.copysign, ops.cos, ops.cosh, ops.divide, ops.equal
exp, expm1 = ops.exp, ops.expm1
conj, imag, real = ops.conj, ops.imag, ops.real
floor, greater, greater_equal, hypot = ops.floor, ops.greater, ops.greater_equal, ops.hypot
floor_divide, remainder, sign = ops.floor_divide, ops.remainder, ops.sign
isfinite, isinf, isnan, less, less_equal = ops.isfinite, ops.isinf, ops.isnan, ops.less, ops.less_equal
log, log10, log1p, log2, logaddexp = ops.log, ops.log10, ops.log1p, ops.log2, ops.logaddexp
logical_and, logical_not, logical_or, logical_xor = ops.logical_and, ops.logical_not, ops.logical_or, ops.logical_xor
maximum, minimum, multiply, negative, nextafter = ops.maximum, ops.minimum, ops.multiply, ops.negative, ops.nextafter
not_equal, pow, reciprocal = ops.not_equal, ops.pow, ops.reciprocal
signbit, sin, sinh, sqrt, square = ops.signbit, ops.sin, ops.sinh, ops.sqrt, ops.square
subtract, tan, tanh, trunc = ops.subtract, ops.tan, ops.tanh, ops.trunc


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
    return _meshard.clip(x, min, max)
