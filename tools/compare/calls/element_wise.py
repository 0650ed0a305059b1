"""Element-wise functions."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import special

from calls.call import Call, operation

FAMILY = "element_wise"


def unary(name, f, low=None, high=None, integers=0.1, complexes=0.0, exact=False, derivative=True, bools=0.0, floats=1):
    def draw(d):
        dtype = d.dtype(floats, integers, complexes, bools)
        bounds = {} if d.chance(0.3) or dtype[0] not in "fbc" or dtype == "bool" else {"low": low, "high": high}
        return Call([d.values(d.shape(), dtype, **bounds)], f, exact=exact, derivative=derivative)
    operation(FAMILY, name)(draw)


def binary(name, f, integers=0.25, floats=1.0, complexes=0.0, bools=0.0, exact=False, derivative=True, low=None,
           high=None, mixed=0.15):
    def draw(d):
        a = d.dtype(floats, integers, complexes, bools)
        b = d.dtype(floats, integers, complexes, bools) if d.chance(mixed) else a
        shape = d.shape()
        bounds = {"low": low, "high": high} if low is not None else {}
        return Call([d.values(d.broadcast_to(shape), a, **bounds), d.values(d.broadcast_to(shape), b, **bounds)], f,
                    exact=exact, derivative=derivative)
    operation(FAMILY, name)(draw)


for _name, _f, _low, _high in (
        ("acos", jnp.arccos, -1, 1), ("acosh", jnp.arccosh, 1, 9), ("asin", jnp.arcsin, -1, 1),
        ("asinh", jnp.arcsinh, -9, 9), ("atan", jnp.arctan, -9, 9), ("atanh", jnp.arctanh, -1, 1),
        ("cos", jnp.cos, -9, 9), ("cosh", jnp.cosh, -9, 9), ("exp", jnp.exp, -9, 9), ("expm1", jnp.expm1, -2, 2),
        ("log", jnp.log, 0, 9), ("log1p", jnp.log1p, -1, 4), ("sin", jnp.sin, -9, 9), ("sinh", jnp.sinh, -9, 9),
        ("sqrt", jnp.sqrt, 0, 9), ("rsqrt", lax.rsqrt, 0, 9), ("tan", jnp.tan, -9, 9), ("tanh", jnp.tanh, -4, 4),
        ("logistic", jax.nn.sigmoid, -9, 9), ("square", jnp.square, -9, 9), ("reciprocal", jnp.reciprocal, -9, 9),
        ("abs", jnp.abs, -9, 9), ("negative", jnp.negative, -9, 9), ("sign", jnp.sign, -9, 9), ("log2", jnp.log2, 0, 9),
        ("log10", jnp.log10, 0, 9), ("exp2", jnp.exp2, -9, 9)):
    unary(_name, _f, _low, _high, complexes=0.0 if _name in ("rsqrt",) else 0.15,
          integers=0.0 if _name in ("rsqrt", "reciprocal") else 0.1)
for _name, _f, _low, _high in (
        ("cbrt", jnp.cbrt, -9, 9), ("digamma", special.digamma, 0.1, 9), ("lgamma", special.gammaln, 0.1, 9),
        ("erf", lax.erf, -3, 3), ("erfc", lax.erfc, -3, 3), ("erf_inv", lax.erf_inv, -0.99, 0.99)):
    unary(_name, _f, _low, _high, integers=0.0)
for _name, _f in (("relu", jax.nn.relu), ("relu6", jax.nn.relu6), ("selu", jax.nn.selu), ("silu", jax.nn.silu),
                  ("mish", jax.nn.mish), ("softplus", jax.nn.softplus), ("log_sigmoid", jax.nn.log_sigmoid),
                  ("soft_sign", jax.nn.soft_sign), ("hard_tanh", jax.nn.hard_tanh),
                  ("hard_sigmoid", jax.nn.hard_sigmoid), ("hard_silu", jax.nn.hard_silu)):
    unary(_name, _f, -7, 7, integers=0.0)
for _name, _f in (("floor", jnp.floor), ("ceil", jnp.ceil), ("round", jnp.round), ("trunc", jnp.trunc)):
    unary(_name, _f, -4, 4, integers=0.0, exact=True)
unary("round_nearest_afz", lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), -4, 4, integers=0, exact=True)
for _name, _f in (("isnan", jnp.isnan), ("isinf", jnp.isinf), ("isfinite", jnp.isfinite), ("signbit", jnp.signbit)):
    unary(_name, _f, integers=0.15 if _name != "signbit" else 0, complexes=0.1 if _name != "signbit" else 0, exact=True,
          derivative=False)
for _name, _f in (("real", jnp.real), ("imag", jnp.imag), ("conj", jnp.conj)):
    unary(_name, _f, complexes=3, integers=0, exact=True)
unary("logical_not", jnp.logical_not, floats=0, integers=0, bools=1, exact=True, derivative=False)
for _name, _f in (("bitwise_invert", jnp.bitwise_not), ("popcnt", lax.population_count),
                  ("count_leading_zeros", lax.clz)):
    operation(FAMILY, _name)(lambda d, f=_f: Call([d.values(d.shape(), d.dtype(0, 1))], f, derivative=False))
unary("stop_gradient", lambda x: x * lax.stop_gradient(x), -3, 3, complexes=0.1)

for _name, _f, _complex in (("add", jnp.add, 0.15), ("subtract", jnp.subtract, 0.15), ("multiply", jnp.multiply, 0.15),
                            ("maximum", jnp.maximum, 0), ("minimum", jnp.minimum, 0), ("divide", jnp.divide, 0.15)):
    binary(_name, _f, complexes=_complex)
for _name, _f in (("atan2", jnp.arctan2), ("hypot", jnp.hypot), ("logaddexp", jnp.logaddexp)):
    binary(_name, _f, integers=0.05)
binary("copysign", jnp.copysign, integers=0.05, exact=True)
binary("nextafter", jnp.nextafter, integers=0, exact=True, derivative=False)
for _name, _f in (("equal", jnp.equal), ("not_equal", jnp.not_equal), ("less", jnp.less), ("greater", jnp.greater),
                  ("less_equal", jnp.less_equal), ("greater_equal", jnp.greater_equal)):
    binary(_name, _f, bools=0.1, complexes=0.1 if "equal" == _name[-5:] and "_" not in _name else 0, exact=True,
           derivative=False)
for _name, _f in (("logical_and", jnp.logical_and), ("logical_or", jnp.logical_or), ("logical_xor", jnp.logical_xor)):
    binary(_name, _f, floats=0, integers=0, bools=1, exact=True, derivative=False)
for _name, _f in (("bitwise_and", jnp.bitwise_and), ("bitwise_or", jnp.bitwise_or), ("bitwise_xor", jnp.bitwise_xor)):
    binary(_name, _f, floats=0, integers=1, bools=0.2, exact=True, derivative=False)
for _name, _f in (("remainder", jnp.remainder), ("fmod", jnp.fmod), ("floor_divide", jnp.floor_divide)):
    binary(_name, _f, exact=True, integers=0.5)


@operation(FAMILY)
def pow(d):
    shape, dtype = d.shape(), d.dtype(1, 0.2, 0.1)
    if d.chance(0.4):
        power = d.integer(-3, 4) if dtype[0] not in "iu" else d.integer(0, 4)
        return Call([d.values(shape, dtype)], lambda x: x ** power, {"power": power})
    if dtype[0] in "iu":
        return Call([d.values(shape, dtype), d.values(d.broadcast_to(shape), dtype, 0, 4)], jnp.power)
    bounds = {"low": 0, "high": 4} if d.chance(0.6) else {}
    return Call([d.values(shape, dtype, **bounds), d.values(d.broadcast_to(shape), dtype)], jnp.power)


def _shift(name, f):
    def draw(d):
        dtype, shape = d.dtype(0, 1), d.shape()
        bits = int(dtype[1:])
        return Call([d.values(shape, dtype), d.values(d.broadcast_to(shape), dtype, 0, bits - 1)], f, derivative=False)
    operation(FAMILY, name)(draw)


_shift("bitwise_left_shift", jnp.left_shift)
_shift("bitwise_right_shift", jnp.right_shift)
_shift("shift_right_logical", lambda a, b: lax.shift_right_logical(*jnp.broadcast_arrays(a, b)))


@operation(FAMILY)
def truncated_divide(d):
    dtype, shape = d.dtype(0, 1), d.shape()
    return Call([d.values(shape, dtype), d.values(shape, dtype, 1, 5)], lax.div, exact=True, derivative=False)


@operation(FAMILY)
def where(d):
    shape, dtype = d.shape(), d.dtype(1, 0.2, 0.1)
    return Call([d.values(d.broadcast_to(shape), "bool"), d.values(shape, dtype), d.values(d.broadcast_to(shape), dtype)],
                jnp.where, exact=True)


@operation(FAMILY)
def clip(d):
    dtype = d.dtype(1, 0.3)
    x = d.values(d.shape(), dtype)
    low, high = sorted((d.integer(-3, 3), d.integer(-3, 3))) if dtype[0] != "u" else (1, 4)
    return Call([x], lambda x: jnp.clip(x, low, high), {"min": low, "max": high}, exact=True)


@operation(FAMILY)
def clip_tensors(d):
    shape, dtype = d.shape(), d.dtype(1, 0.3)
    low, high = sorted((d.integer(0, 3), d.integer(0, 3)))
    return Call([d.values(shape, dtype), d.values(d.broadcast_to(shape), dtype, -3 if dtype[0] != "u" else 0, low),
                 d.values(d.broadcast_to(shape), dtype, low, low + high)], lambda x, a, b: jnp.clip(x, a, b), exact=True)


@operation(FAMILY)
def complex(d):
    shape, dtype = d.shape(), d.one_of(("f32", "f32", "f64"))
    return Call([d.values(shape, dtype), d.values(shape, dtype)], lax.complex, exact=True)


@operation(FAMILY)
def astype(d):
    from calls.draw import DTYPES
    source, target = (d.dtype(1, 0.5, 0, 0.2) for _ in range(2))
    if "64" in target and "64" not in source:  # JAX has 64 bits only if an operand does
        source = target
    d.manner = d.one_of(("plain", "ties"))
    x = d.values(d.shape(), source, *((0, 7) if target[0] == "u" and source != "bool" else ()))
    return Call([x], lambda x: x.astype(DTYPES[target]), {"dtype": target}, exact=True)


@operation(FAMILY)
def reduce_precision(d):
    exponent, mantissa = d.integer(3, 8), d.integer(2, 12)
    return Call([d.values(d.shape(), "f32")], lambda x: lax.reduce_precision(x, exponent, mantissa),
                {"exponent_bits": exponent, "mantissa_bits": mantissa}, exact=True)


@operation(FAMILY)
def leaky_relu(d):
    slope = d.one_of((0.01, 0.2, 0.5))
    return Call([d.floats()], lambda x: jax.nn.leaky_relu(x, slope), {"negative_slope": slope})


@operation(FAMILY)
def elu(d):
    alpha = d.one_of((1.0, 0.5, 2.0))
    return Call([d.floats()], lambda x: jax.nn.elu(x, alpha), {"alpha": alpha})


@operation(FAMILY)
def celu(d):
    alpha = d.one_of((1.0, 0.5, 2.0))
    return Call([d.floats()], lambda x: jax.nn.celu(x, alpha), {"alpha": alpha})


@operation(FAMILY)
def gelu(d):
    tanh = d.chance(0.5)
    return Call([d.floats()], lambda x: jax.nn.gelu(x, tanh), {"form": "tanh" if tanh else "erf"})


@operation(FAMILY)
def polygamma(d):
    shape, dtype = d.shape(), d.one_of(("f32", "f64"))
    order = d.integer(0, 4)
    return Call([d.values(shape, dtype, 0.2, 9)], lambda x: special.polygamma(order, x), {"order": order})


@operation(FAMILY)
def zeta(d):
    shape, dtype = d.shape(), d.one_of(("f32", "f64"))
    return Call([d.values(shape, dtype, 1.5, 9), d.values(shape, dtype, 0.2, 9)], special.zeta, derivative=False)
