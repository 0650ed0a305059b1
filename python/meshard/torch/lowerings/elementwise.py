"""Element-wise operations."""

import math

import torch

import meshard as ms

from .._dtypes import Promotion, promoted, to_meshard, to_torch
from .._table import lowers
from ._helpers import as_dtype, cast, elementwise, is_number

FLOAT = Promotion.INT_TO_FLOAT
BOOL = Promotion.ALWAYS_BOOL


def _register(name, function, promotion=Promotion.DEFAULT, overloads=("default",)):
    for overload in overloads:
        lowers(f"aten.{name}.{overload}")(
            lambda *operands, function=function, promotion=promotion: elementwise(
                function, *operands, promotion=promotion))


for _name, _function in {
        "acos": ms.acos, "acosh": ms.acosh, "asin": ms.asin, "asinh": ms.asinh, "atan": ms.atan, "atanh": ms.atanh,
        "cos": ms.cos, "cosh": ms.cosh, "digamma": ms.digamma, "erf": ms.erf, "erfc": ms.erfc, "erfinv": ms.erf_inv,
        "exp": ms.exp, "exp2": ms.exp2, "expm1": ms.expm1, "lgamma": ms.lgamma, "log": ms.log, "log10": ms.log10,
        "log1p": ms.log1p, "log2": ms.log2, "reciprocal": ms.reciprocal, "rsqrt": ms.rsqrt, "sigmoid": ms.logistic,
        "sin": ms.sin, "sinh": ms.sinh, "sqrt": ms.sqrt, "tan": ms.tan, "tanh": ms.tanh}.items():
    _register(_name, _function, FLOAT)

for _name, _function in {"neg": ms.negative, "conj_physical": ms.conj, "sgn": ms.sign, "square": ms.square}.items():
    _register(_name, _function)

_register("abs", ms.abs, Promotion.COMPLEX_TO_FLOAT)
_register("logical_not", lambda x: ms.equal(x, ms.zeros_like(x)), BOOL)
_register("bitwise_not", lambda x: ms.bitwise_invert(x))
_register("isnan", lambda x: ms.not_equal(x, x), BOOL)
_register("atan2", ms.atan2, FLOAT)
_register("hypot", ms.hypot)
_register("fmax", lambda a, b: ms.where(ms.not_equal(a, a), b, ms.where(ms.not_equal(b, b), a, ms.maximum(a, b))))
_register("fmin", lambda a, b: ms.where(ms.not_equal(a, a), b, ms.where(ms.not_equal(b, b), a, ms.minimum(a, b))))
_register("maximum", ms.maximum)
_register("minimum", ms.minimum)
_register("nextafter", ms.nextafter)
_register("copysign", ms.copysign, FLOAT, ("Tensor", "Scalar"))
_register("mul", lambda a, b: ms.logical_and(a, b) if to_torch(a.dtype) == torch.bool else ms.multiply(a, b),
          overloads=("Tensor", "Scalar"))

for _name, _function in {"eq": ms.equal, "ne": ms.not_equal, "lt": ms.less, "le": ms.less_equal, "gt": ms.greater,
                         "ge": ms.greater_equal}.items():
    _register(_name, _function, BOOL, ("Tensor", "Scalar"))

for _name, _function in {"bitwise_and": ms.bitwise_and, "bitwise_or": ms.bitwise_or,
                         "bitwise_xor": ms.bitwise_xor}.items():
    _register(_name, _function, overloads=("Tensor", "Scalar", "Scalar_Tensor"))

for _name, _function in {"logical_and": ms.logical_and, "logical_or": ms.logical_or,
                         "logical_xor": ms.logical_xor}.items():
    _register(_name, lambda a, b, function=_function: function(cast(a, torch.bool), cast(b, torch.bool)), BOOL)


def _integers_unchanged(function):
    return lambda x: function(x) if to_torch(x.dtype).is_floating_point else x


for _name, _function in {"ceil": ms.ceil, "floor": ms.floor, "trunc": ms.trunc, "round": ms.round}.items():
    _register(_name, _integers_unchanged(_function))


@lowers("aten.sign")
def sign(x):
    if to_torch(x.dtype) == torch.bool:
        return x
    made = ms.sign(x)
    # PyTorch's sign of NaN is 0.
    return ms.where(ms.isnan(x), ms.zeros_like(x), made) if to_torch(x.dtype).is_floating_point else made


@lowers("aten.signbit")
def signbit(x):
    dtype = to_torch(x.dtype)
    return ms.signbit(x) if dtype.is_floating_point else \
        ms.zeros(x.shape, dtype=ms.bool) if dtype == torch.bool else ms.less(x, ms.zeros_like(x))


@lowers("aten.isinf")
def isinf(x):
    return ms.isinf(x) if to_torch(x.dtype).is_floating_point or to_torch(x.dtype).is_complex \
        else ms.zeros(x.shape, dtype=ms.bool)


@lowers("aten.add.Tensor", "aten.add.Scalar")
def add(a, b, alpha=1):
    def sum_of(x, y):
        if to_torch(x.dtype) == torch.bool:
            return ms.logical_or(x, y) if not is_number(alpha, 0) else x
        return ms.add(x, y if is_number(alpha, 1) else ms.multiply(y, as_dtype(alpha, to_torch(y.dtype))))

    return elementwise(sum_of, a, b)


@lowers("aten.sub.Tensor", "aten.sub.Scalar")
def sub(a, b, alpha=1):
    return elementwise(
        lambda x, y: ms.subtract(x, y if is_number(alpha, 1) else ms.multiply(y, as_dtype(alpha, to_torch(y.dtype)))), a, b)


@lowers("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(a, b, alpha=1):
    return sub(b, a, alpha)


@lowers("aten.div.Tensor", "aten.div.Scalar", "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div(a, b, rounding_mode=None):
    if rounding_mode is None:
        return elementwise(ms.divide, a, b, promotion=FLOAT)
    if rounding_mode == "floor":
        return floor_divide(a, b)
    return elementwise(_truncated_division, a, b)


def _truncated_division(x, y):
    return ms.trunc(ms.divide(x, y)) if to_torch(x.dtype).is_floating_point else ms.truncated_divide(x, y)


@lowers("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(a, b):
    return elementwise(ms.floor_divide, a, b)


@lowers("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(a, b):
    return elementwise(ms.remainder, a, b)


@lowers("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(a, b):
    return elementwise(ms.fmod, a, b)


@lowers("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def power(a, b):
    return elementwise(ms.pow, a, b)


@lowers("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar")
def where(condition, a, b):
    dtype = promoted((a, b))
    return ms.where(condition, as_dtype(a, dtype), as_dtype(b, dtype))


@lowers("aten.relu")
def relu(x):
    # max(x, 0), which passes NaN on.
    return ms.maximum(x, ms.zeros_like(x))


@lowers("aten.gelu")
def gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + ms.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + ms.erf(x * math.sqrt(0.5)))


@lowers("aten._to_copy", "prims.convert_element_type")
def to_copy(x, dtype=None, **_):
    return x if dtype is None else cast(x, dtype)


@lowers("aten.clone", "aten.alias", "aten.lift_fresh_copy", "aten.detach", "aten.contiguous")
def clone(x, **_):
    return x
