"""Element-wise functions. Those with the semantics of the standard are the ops themselves."""

from .. import _meshard
from .._meshard.ops import (
    abs, add, atan2, bitwise_and, bitwise_invert, acos, acosh, asin, asinh, atan, atanh, bitwise_left_shift, bitwise_or,
    bitwise_right_shift, bitwise_xor, ceil, copysign, cos, cosh, divide, equal, exp, expm1, conj, imag, real, floor,
    greater, greater_equal, hypot, floor_divide, remainder, sign, isfinite, isinf, isnan, less, less_equal, log, log10,
    log1p, log2, logaddexp, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, multiply, negative,
    nextafter, not_equal, pow, reciprocal, signbit, sin, sinh, sqrt, square, subtract, tan, tanh, trunc)
from .common import COMPLEX, Tensor, ops
from .creation import as_tensor

__all__ = ["abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
           "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign",
           "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal",
           "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2",
           "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
           "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "sign",
           "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc"]


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
