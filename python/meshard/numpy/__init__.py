"""NumPy's names with NumPy's arguments, for tensors.

    import meshard.numpy as mnp

Every function is made of meshard's ops: it runs on the devices, sharded or not, inside `jit`, and has derivatives. Its
arguments are tensors, numbers, lists or arrays. Dtypes are meshard's: float32 and int32 where NumPy makes float64 and
int64 of Python numbers. What changes an array in place (`out=`, `put`, `fill_diagonal`) is not here: use `x.at[...]`.
Functions whose result's shape depends on the elements (`unique`, `nonzero`, ...) read them, and are errors inside `jit`
unless they take `size`.
"""

import math as _math

from .. import _dtypes, fft
from .._array_api.data_types import can_cast, finfo, iinfo, isdtype, result_type
from .._array_api.elementwise import (
    abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_or, bitwise_xor, ceil, conj, copysign,
    cos, cosh, divide, equal, exp, expm1, floor, floor_divide, greater, greater_equal, hypot, imag, isfinite, isinf,
    isnan, less, less_equal, log, log10, log1p, log2, logaddexp, logical_and, logical_not, logical_or, logical_xor,
    maximum, minimum, multiply, negative, nextafter, not_equal, positive, pow, real, reciprocal, remainder, sign,
    signbit, sin, sinh, sqrt, square, subtract, tan, tanh, trunc)
from .._array_api.linear_algebra import matmul, matrix_transpose
from .._array_api.manipulation import broadcast_shapes
from .._array_api.others import cbrt, einsum, exp2, fmod
from .._names import shown as _shown
from . import linalg, _creation, _histograms, _math_functions, _order, _polynomials, _reductions, _shapes
from ._creation import *  # noqa: F403
from ._histograms import *  # noqa: F403
from ._math_functions import *  # noqa: F403
from ._order import *  # noqa: F403
from ._polynomials import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._shapes import *  # noqa: F403

absolute, power, mod, true_divide, conjugate = abs, pow, remainder, divide, conj
arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh = acos, acosh, asin, asinh, atan, atan2, atanh
e, euler_gamma, inf, nan, newaxis, pi = _math.e, 0.5772156649015329, _math.inf, _math.nan, None, _math.pi
bool_, int8, int16, int32, int64 = _dtypes.bool, _dtypes.int8, _dtypes.int16, _dtypes.int32, _dtypes.int64
uint8, uint16, uint32, uint64 = _dtypes.uint8, _dtypes.uint16, _dtypes.uint32, _dtypes.uint64
float16, bfloat16, float32, float64 = _dtypes.float16, _dtypes.bfloat16, _dtypes.float32, _dtypes.float64
complex64, complex128 = _dtypes.complex64, _dtypes.complex128

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "asin", "asinh", "atan", "atan2", "atanh", "bfloat16", "bitwise_and", "bitwise_or", "bitwise_xor", "bool_",
    "broadcast_shapes", "can_cast", "cbrt", "ceil", "complex128", "complex64", "conj", "conjugate", "copysign", "cos",
    "cosh", "divide", "e", "einsum", "equal", "euler_gamma", "exp", "exp2", "expm1", "fft", "finfo", "float16",
    "float32", "float64", "floor", "floor_divide", "fmod", "greater", "greater_equal", "hypot", "iinfo", "imag", "inf",
    "int16", "int32", "int64", "int8", "isdtype", "isfinite", "isinf", "isnan", "less", "less_equal", "linalg", "log",
    "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul",
    "matrix_transpose", "maximum", "minimum", "mod", "multiply", "nan", "negative", "newaxis", "nextafter", "not_equal",
    "pi", "positive", "pow", "power", "real", "reciprocal", "remainder", "result_type", "sign", "signbit", "sin",
    "sinh", "sqrt", "square", "subtract", "tan", "tanh", "true_divide", "trunc", "uint16", "uint32", "uint64", "uint8"]
for _chapter in (_creation, _histograms, _math_functions, _order, _polynomials, _reductions, _shapes):
    __all__ += _chapter.__all__
__all__.sort()

__getattr__, __dir__ = _shown(__name__)
