"""Element-wise operations."""

import math

import torch

import meshard as ms
from meshard._meshard import ops

from .._dtypes import Promotion, promoted, to_meshard, to_torch
from .._table import lowers
from ._helpers import as_dtype, as_operand, cast, elementwise, is_number, wide

FLOAT = Promotion.INT_TO_FLOAT
BOOL = Promotion.ALWAYS_BOOL


def _register(name, function, promotion=Promotion.DEFAULT, overloads=("default",), prim=None):
    """Registers an overload of ATen, and the operation of PyTorch's decompositions that does the same."""
    names = [f"aten.{name}.{overload}" for overload in overloads]
    if (prim or name) in _PRIMS:
        names.append(f"prims.{prim or name}.default")
    lowers(*names)(lambda *operands: elementwise(function, *operands, promotion=promotion))


_PRIMS = {
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "bitwise_not", "ceil", "conj_physical",
    "erf", "erf_inv", "erfc", "exp", "expm1", "exp2", "floor", "lgamma", "log", "log1p", "log2", "log10", "reciprocal",
    "neg", "round", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "atan2", "bitwise_and", "bitwise_or",
    "bitwise_xor", "eq", "fmax", "fmin", "ge", "gt", "hypot", "le", "lt", "maximum", "minimum", "mul", "ne",
    "nextafter", "gcd"}


for _name, _function in {
        "acos": ms.acos, "acosh": ms.acosh, "asin": ms.asin, "asinh": ms.asinh, "atan": ms.atan, "atanh": ms.atanh,
        "cos": ms.cos, "cosh": ms.cosh, "erf": ms.erf, "erfc": ms.erfc,
        "exp": ms.exp, "exp2": wide(ms.exp2), "expm1": ms.expm1, "lgamma": ms.lgamma, "log": ms.log,
        "log10": wide(ms.log10), "log1p": ms.log1p, "log2": wide(ms.log2), "reciprocal": ms.reciprocal,
        "rsqrt": ms.rsqrt, "sigmoid": ms.logistic, "sin": ms.sin, "sinh": ms.sinh, "sqrt": ms.sqrt, "tan": ms.tan,
        "tanh": ms.tanh}.items():
    _register(_name, _function, FLOAT)
_register("erfinv", ms.erf_inv, FLOAT, prim="erf_inv")

for _name, _function in {"neg": ms.negative, "conj_physical": ms.conj, "square": ms.square}.items():
    _register(_name, _function)

_register("abs", ms.abs, Promotion.COMPLEX_TO_FLOAT)
_register("logical_not", lambda x: ms.equal(x, ms.zeros_like(x)), BOOL)
_register("bitwise_not", lambda x: ms.bitwise_invert(x))
_register("isnan", lambda x: ms.not_equal(x, x), BOOL)
_register("atan2", ms.atan2, FLOAT)
_register("hypot", ms.hypot)


def _larger(a, b):
    return ms.logical_or(a, b) if to_torch(a.dtype) == torch.bool else ms.maximum(a, b)


def _smaller(a, b):
    return ms.logical_and(a, b) if to_torch(a.dtype) == torch.bool else ms.minimum(a, b)


def _of_numbers(function):
    """A function of two elements that ignores NaN if the other one is a number."""
    return lambda a, b: ms.where(ms.not_equal(a, a), b, ms.where(ms.not_equal(b, b), a, function(a, b)))


for _name, _function in {"maximum": _larger, "minimum": _smaller, "fmax": _of_numbers(_larger),
                         "fmin": _of_numbers(_smaller)}.items():
    _register(_name, _function)
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


@lowers("aten.sign", "prims.sign")
def sign(x):
    if to_torch(x.dtype) == torch.bool:
        return x
    made = ms.sign(x)
    # PyTorch's sign of NaN is 0.
    return ms.where(ms.isnan(x), ms.zeros_like(x), made) if to_torch(x.dtype).is_floating_point else made


@lowers("aten.signbit", "prims.signbit")
def signbit(x):
    dtype = to_torch(x.dtype)
    return ms.signbit(x) if dtype.is_floating_point else \
        ms.zeros(x.shape, dtype=ms.bool) if dtype == torch.bool else ms.less(x, ms.zeros_like(x))


@lowers("aten.isinf")
def isinf(x):
    return ms.isinf(x) if to_torch(x.dtype).is_floating_point or to_torch(x.dtype).is_complex \
        else ms.zeros(x.shape, dtype=ms.bool)


@lowers("aten.add.Tensor", "aten.add.Scalar", "prims.add")
def add(a, b, alpha=1):
    def sum_of(x, y):
        if to_torch(x.dtype) == torch.bool:
            return ms.logical_or(x, y) if not is_number(alpha, 0) else x
        return ms.add(x, y if is_number(alpha, 1) else ms.multiply(y, as_operand(alpha, to_torch(y.dtype))))

    return elementwise(sum_of, a, b)


@lowers("aten.sub.Tensor", "aten.sub.Scalar", "prims.sub")
def sub(a, b, alpha=1):
    def difference(x, y):
        return ms.subtract(x, y if is_number(alpha, 1) else ms.multiply(y, as_operand(alpha, to_torch(y.dtype))))

    return elementwise(difference, a, b)


@lowers("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(a, b, alpha=1):
    return sub(b, a, alpha)


@lowers("aten.div.Tensor", "aten.div.Scalar", "aten.div.Tensor_mode", "aten.div.Scalar_mode",
        "aten.true_divide.Tensor")
def div(a, b, rounding_mode=None):
    if rounding_mode is None:
        return elementwise(ms.divide, a, b, promotion=FLOAT)
    if rounding_mode == "floor":
        return floor_divide(a, b)
    return elementwise(_truncated_division, a, b)


def _added(combined, promotion):
    """The lowering of x + value * combined(a, b)."""

    def lowering(x, a, b, value=1):
        def computed(x, a, b):
            if type(value) not in (bool, int) and not to_torch(x.dtype).is_floating_point:
                raise ValueError(f"value argument of type {type(value)} cannot be safely cast to {to_torch(x.dtype)}!")
            factor = a if is_number(value, 1) else ms.multiply(as_operand(value, to_torch(a.dtype)), a)
            return ms.add(x, combined(factor, b))

        return elementwise(wide(computed), x, a, b, promotion=promotion)

    return lowering


lowers("aten.addcmul")(_added(ms.multiply, Promotion.DEFAULT))
lowers("aten.addcdiv")(_added(ms.divide, FLOAT))


def _truncated_division(x, y):
    return ms.trunc(ms.divide(x, y)) if to_torch(x.dtype).is_floating_point else ms.truncated_divide(x, y)


def _floor_quotient(x, y):
    """Python's quotient: `x` is its product with `y` plus the remainder. Infinities and zeros are as in PyTorch."""
    if not to_torch(x.dtype).is_floating_point:
        return ms.floor_divide(x, y)
    zero, rest, plain = ms.zeros_like(y), ms.fmod(x, y), ms.divide(x, y)
    quotient = ms.divide(ms.subtract(x, rest), y)
    other_sign = ms.not_equal(ms.less(y, zero), ms.less(rest, zero))
    quotient = ms.where(ms.logical_and(ms.not_equal(rest, zero), other_sign), ms.subtract(quotient, 1), quotient)
    whole = ms.floor(quotient)
    whole = ms.where(ms.greater(ms.subtract(quotient, whole), 0.5), ms.add(whole, 1), whole)
    whole = ms.where(ms.equal(quotient, ms.zeros_like(quotient)), ms.copysign(ms.zeros_like(plain), plain), whole)
    return ms.where(ms.equal(y, zero), plain, whole)


@lowers("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(a, b):
    return elementwise(wide(_floor_quotient), a, b)


def _signed_remainder(x, y):
    """The remainder with the sign of `y`; that of 0 has the sign of `x`."""
    if not to_torch(x.dtype).is_floating_point:
        return ms.remainder(x, y)
    zero, rest = ms.zeros_like(y), ms.fmod(x, y)
    other_sign = ms.not_equal(ms.less(y, zero), ms.less(rest, zero))
    return ms.where(ms.logical_and(ms.not_equal(rest, zero), other_sign), ms.add(rest, y), rest)


@lowers("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor", "prims.remainder")
def remainder(a, b):
    return elementwise(_signed_remainder, a, b)


@lowers("aten.fmod.Tensor", "aten.fmod.Scalar", "prims.fmod")
def fmod(a, b):
    return elementwise(ms.fmod, a, b)


@lowers("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar", "prims.pow")
def power(a, b):
    if type(b) is int and isinstance(a, ms.Tensor) and to_torch(a.dtype).is_floating_point:
        b = as_dtype(b, to_torch(a.dtype))  # the compiler makes products of a constant
    return elementwise(ms.pow, a, b)


@lowers("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar", "prims.where")
def where(condition, a, b):
    dtype = promoted((a, b))
    return ms.where(condition, as_dtype(a, dtype), as_dtype(b, dtype))


@lowers("aten.relu")
def relu(x):
    # max(x, 0), which passes NaN on.
    return ms.maximum(x, ms.zeros_like(x))


@lowers("aten.gelu")
def gelu(x, approximate="none"):
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"[torch] gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    return wide(lambda x: _gelu(x, approximate))(x)


def _gelu(x, approximate):
    if approximate == "tanh":
        return 0.5 * x * (1 + ms.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + ms.erf(x * math.sqrt(0.5)))


@lowers("aten._to_copy", "prims.convert_element_type")
def to_copy(x, dtype=None, **_):
    return x if dtype is None else cast(x, dtype)


@lowers("aten.clone", "aten.alias", "aten.lift_fresh_copy", "aten.detach", "aten.contiguous", "prims.view_of",
        "prims.clone", "aten.detach_copy", "aten.alias_copy", "aten.resolve_conj", "aten.resolve_neg")
def clone(x, **_):
    return x


@lowers("prims.copy_strided")
def copy_strided(x, stride):
    """Returns the source: values of a program have no strides."""
    return x


@lowers("prims.div")
def division(a, b):
    """Division in the dtype of the operands; of integers truncated."""
    dtype = promoted((a, b))
    if dtype.is_floating_point or dtype.is_complex:
        return elementwise(ms.divide, a, b)
    return elementwise(ms.truncated_divide, a, b)


@lowers("prims.isfinite", "aten.isfinite")
def isfinite(x):
    dtype = to_torch(x.dtype)
    return ms.isfinite(x) if dtype.is_floating_point or dtype.is_complex else ms.ones(x.shape, dtype=ms.bool)


@lowers("prims.cbrt")
def cbrt(x):
    return elementwise(ms.cbrt, x, promotion=FLOAT)


@lowers("aten.sgn")
def sgn(x):
    return ms.sign(x) if to_torch(x.dtype).is_complex else sign(x)


def _shift(function, a, b):
    def computed(a, b):
        # Negative distances are as unsigned ones: too far.
        width = torch.iinfo(to_torch(b.dtype)).max
        return function(a, ms.where(ms.less(b, ms.zeros_like(b)), ms.full_like(b, width), b))

    return elementwise(computed, a, b)


@lowers("aten.bitwise_left_shift.Tensor", "aten.bitwise_left_shift.Tensor_Scalar", "prims.shift_left",
        "aten.bitwise_left_shift.Scalar_Tensor", "aten.__lshift__.Tensor", "aten.__lshift__.Scalar")
def bitwise_left_shift(a, b):
    return _shift(ms.bitwise_left_shift, a, b)


@lowers("aten.bitwise_right_shift.Tensor", "aten.bitwise_right_shift.Tensor_Scalar", "prims.shift_right_arithmetic",
        "aten.bitwise_right_shift.Scalar_Tensor", "aten.__rshift__.Tensor", "aten.__rshift__.Scalar")
def bitwise_right_shift(a, b):
    return _shift(ms.bitwise_right_shift, a, b)


def _gcd(a, b):
    a, b = ms.broadcast_arrays(a, b)

    def step(pair):
        a, b = pair
        zero = ms.equal(b, ms.zeros_like(b))
        return ms.where(zero, a, b), ms.where(zero, b, ms.fmod(a, ms.where(zero, ms.ones_like(b), b)))

    made, _ = ms.while_loop(lambda pair: ms.any(ms.not_equal(pair[1], ms.zeros_like(pair[1]))), step, (a, b))
    return ms.abs(made)


_register("gcd", _gcd)


@lowers("aten.complex")
def complex_of(real, imag):
    dtype = torch.promote_types(to_torch(real.dtype), to_torch(imag.dtype))
    return ms_complex(as_dtype(real, dtype), as_dtype(imag, dtype))


def ms_complex(real, imag):
    """Complex numbers of two parts. Infinite and NaN parts are unchanged, which `real + 1j * imag` does not ensure."""
    return ops.complex(real, imag)


@lowers("aten.polar")
def polar(size, angle):
    dtype = torch.promote_types(to_torch(size.dtype), to_torch(angle.dtype))
    size, angle = as_dtype(size, dtype), as_dtype(angle, dtype)
    return ms_complex(size * ms.cos(angle), size * ms.sin(angle))


@lowers("aten.angle")
def angle(x):
    dtype = to_torch(x.dtype)
    if dtype.is_complex:
        return ms.atan2(ms.imag(x), ms.real(x))
    if not dtype.is_floating_point:
        x = cast(x, torch.get_default_dtype())
    made = ms.where(ms.less(x, ms.zeros_like(x)), ms.full_like(x, math.pi), ms.zeros_like(x))
    return ms.where(ms.isnan(x), x, made)


@lowers("aten._conj", "aten._conj_copy", "aten._conj_physical", "prims.conj")
def conj(x):
    return ms.conj(x)


@lowers("aten._neg_view", "aten._neg_view_copy")
def neg_view(x):
    return ms.negative(x)


@lowers("aten.real", "prims.real")
def real(x):
    return ms.real(x)


@lowers("aten.imag", "prims.imag")
def imag(x):
    return ms.imag(x)


@lowers("aten.frexp.Tensor", "prims.frexp")
def frexp(x):
    """Mantissas of at least 1/2 and less than 1, and exponents of 2 in int32."""
    dtype = to_torch(x.dtype)
    value = x if dtype in (torch.float32, torch.float64) else cast(x, torch.float32)
    double = dtype == torch.float64
    bits, integer, fraction, bias = (64, torch.int64, 52, 1022) if double else (32, torch.int32, 23, 126)
    pattern = ms.bitcast_convert(value, to_meshard(integer))
    mask = (1 << (bits - 1 - fraction)) - 1

    def exponent_of(pattern):
        shifted = ms.shift_right_logical(pattern, as_dtype(fraction, integer))
        return ms.bitwise_and(shifted, as_dtype(mask, integer)) - bias

    # The fraction of a subnormal number is an integer, whose float has a leading 1. (As floats, they may count as 0.)
    integers = ms.bitwise_and(pattern, as_dtype((1 << fraction) - 1, integer))
    subnormal = ms.equal(exponent_of(pattern), as_dtype(-bias, integer))
    zero = ms.logical_and(subnormal, ms.equal(integers, ms.zeros_like(integers)))
    as_float = ms.bitcast_convert(ms.astype(integers, value.dtype), to_meshard(integer))
    sign = ms.bitwise_and(pattern, as_dtype(-(1 << (bits - 1)), integer))
    pattern = ms.where(subnormal, ms.bitwise_or(sign, as_float), pattern)
    exponent = exponent_of(pattern) - ms.where(subnormal, as_dtype(bias + fraction, integer), as_dtype(0, integer))
    kept = ms.bitwise_and(pattern, as_dtype(~(mask << fraction), integer))
    mantissa = ms.bitcast_convert(ms.bitwise_or(kept, as_dtype(bias << fraction, integer)), value.dtype)
    unchanged = ms.logical_or(zero, ms.logical_not(ms.isfinite(value)))
    return cast(ms.where(unchanged, value, mantissa), dtype), \
        cast(ms.where(unchanged, ms.zeros_like(exponent), exponent), torch.int32)


@lowers("aten.heaviside")
def heaviside(x, values):
    def computed(x, values):
        zero = ms.equal(x, ms.zeros_like(x))
        made = cast(ms.greater(x, ms.zeros_like(x)), to_torch(x.dtype))
        return ms.where(zero, values, made)

    return elementwise(computed, x, values)


@lowers("aten.logit")
def logit(x, eps=None):
    def computed(x):
        if eps is not None:
            low, high = ms.full_like(x, eps), ms.full_like(x, 1 - eps)
            # NaN stays NaN.
            x = ms.where(ms.less(x, low), low, ms.where(ms.greater(x, high), high, x))
        return ms.log(x / (1 - x))

    return elementwise(wide(computed), x, promotion=FLOAT)


@lowers("aten._efficientzerotensor")
def zero_tensor(size, dtype=None, **_):
    return ms.zeros(tuple(size), dtype=to_meshard(dtype or torch.get_default_dtype()))
