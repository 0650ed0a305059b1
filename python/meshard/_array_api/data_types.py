"""Data types: conversion, promotion and limits."""

import ml_dtypes
import numpy

from .. import _dtypes as dtypes
from .. import _meshard
from .._foreign_arrays import tensor_of
from .common import (
    COMPLEX,
    DEFAULT_COMPLEX,
    DEFAULT_FLOAT,
    DEFAULT_INTEGER,
    FLOATS,
    INTEGERS,
    SIGNED,
    UNSIGNED,
    Tensor,
    check_device,
    dtype_of,
    ops,
)

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_KINDS = {
    "bool": frozenset((dtypes.bool,)),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGERS,
    "real floating": FLOATS,
    "complex floating": COMPLEX,
    "numeric": INTEGERS | FLOATS | COMPLEX,
}


def astype(x, dtype, /, *, copy=True, device=None):
    """The elements converted to a dtype. Tensors are immutable values, so that a copy is never needed.

    >>> ms.astype(ms.asarray([1.5, -1.5]), ms.int32).tolist()
    [1, -1]
    """
    check_device(device)
    return ops.astype(x, dtype)


def isdtype(dtype, kind):
    """True if a dtype is of a kind: a dtype, `"bool"`, `"signed integer"`, `"unsigned integer"`, `"integral"`,
    `"real floating"`, `"complex floating"`, `"numeric"`, or a tuple of these, any of which may apply.

    >>> ms.isdtype(ms.bfloat16, "real floating"), ms.isdtype(ms.int8, ("bool", "real floating"))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"unknown kind {kind!r} of dtypes: use one of {', '.join(map(repr, _KINDS))}")
        return dtype_of(dtype) in _KINDS[kind]
    return dtype_of(dtype) == dtype_of(kind)


def result_type(*arrays_and_dtypes):
    """The dtype of the result of an op with these operands: tensors, dtypes and Python numbers.

    Numbers only contribute their kind.

    >>> ms.result_type(ms.int32, ms.float32), ms.result_type(ms.bfloat16, 1.0)
    (dtype('float32'), dtype(bfloat16))
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type needs at least one tensor, dtype or number")
    found, numbers = None, []
    for each in arrays_and_dtypes:
        if isinstance(each, (bool, int, float, complex)) and not isinstance(each, numpy.generic):
            numbers.append(each)
            continue
        if _meshard.is_foreign_array(each):
            each = tensor_of(each)
        dtype = dtype_of(each.dtype if hasattr(each, "dtype") and not isinstance(each, type) else each)
        found = dtype if found is None else promoted(found, dtype)
    for number in numbers:
        found = _with_number(found, number)
    return found


def promoted(a, b):
    """The dtype to which two dtypes are promoted."""
    if a == b:
        return a
    key = (a, b)
    if key not in _promoted:
        # The op that promotes is the reference; nothing is computed.
        _promoted[key] = ops.where(True, ops.zeros((), a), ops.zeros((), b)).dtype
    return _promoted[key]


_promoted = {}


def _with_number(dtype, number):
    if dtype is None:
        dtype = dtypes.bool  # None equals float64 in NumPy, so that it must not be compared
    if isinstance(number, bool):
        return dtype
    if isinstance(number, int):
        return DEFAULT_INTEGER if dtype == dtypes.bool else dtype
    if isinstance(number, float):
        return DEFAULT_FLOAT if dtype in INTEGERS or dtype == dtypes.bool else dtype
    if dtype in INTEGERS or dtype == dtypes.bool:
        return DEFAULT_COMPLEX
    return dtype if dtype in COMPLEX else dtypes.complex128 if dtype == dtypes.float64 else dtypes.complex64


def can_cast(from_, to, /):
    """True if promotion may convert a dtype, or the dtype of a tensor, to the dtype `to`.

    >>> ms.can_cast(ms.int8, ms.int32), ms.can_cast(ms.float32, ms.int32)
    (True, False)
    """
    source = from_.dtype if isinstance(from_, Tensor) else dtype_of(from_)
    to = dtype_of(to)
    return promoted(source, to) == to


class finfo:
    """The limits of a floating-point dtype, or of the parts of a complex one, as Python numbers.

    >>> ms.finfo(ms.bfloat16).eps, ms.finfo(ms.float16).max
    (0.0078125, 65504.0)
    """

    __slots__ = ("bits", "eps", "max", "min", "smallest_normal", "dtype")

    def __init__(self, type, /):
        dtype = type.dtype if isinstance(type, Tensor) else dtype_of(type)
        if dtype in COMPLEX:
            dtype = dtypes.float32 if dtype == dtypes.complex64 else dtypes.float64
        limits = ml_dtypes.finfo(dtype)
        self.bits = int(limits.bits)
        self.eps, self.max, self.min = float(limits.eps), float(limits.max), float(limits.min)
        self.smallest_normal = float(limits.smallest_normal)
        self.dtype = dtype

    def __repr__(self):
        return f"finfo({self.dtype}, bits={self.bits}, min={self.min}, max={self.max}, eps={self.eps})"


class iinfo:
    """The limits of an integer dtype, as Python numbers.

    >>> ms.iinfo(ms.int8).min, ms.iinfo(ms.int8).max
    (-128, 127)
    """

    __slots__ = ("bits", "max", "min", "dtype")

    def __init__(self, type, /):
        self.dtype = type.dtype if isinstance(type, Tensor) else dtype_of(type)
        limits = numpy.iinfo(self.dtype)
        self.bits, self.max, self.min = int(limits.bits), int(limits.max), int(limits.min)

    def __repr__(self):
        return f"iinfo({self.dtype}, min={self.min}, max={self.max})"
