"""Dtypes of PyTorch and meshard, and PyTorch's promotion of dtypes."""

import enum

import torch

import meshard as ms

_NAMES = {
    torch.bool: "bool", torch.uint8: "uint8", torch.uint16: "uint16", torch.uint32: "uint32", torch.uint64: "uint64",
    torch.int8: "int8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64",
    torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32", torch.float64: "float64",
    torch.complex64: "complex64", torch.complex128: "complex128",
    torch.float8_e4m3fn: "float8_e4m3fn", torch.float8_e5m2: "float8_e5m2",
    torch.float8_e4m3fnuz: "float8_e4m3fnuz", torch.float8_e5m2fnuz: "float8_e5m2fnuz",
    torch.float8_e8m0fnu: "float8_e8m0fnu",
}
_TO_MESHARD = {dtype: getattr(ms, name) for dtype, name in _NAMES.items()}
_TO_TORCH = {name: dtype for dtype, name in _NAMES.items()}


def to_meshard(dtype):
    """The dtype of meshard for one of PyTorch."""
    try:
        return _TO_MESHARD[dtype]
    except KeyError:
        raise TypeError(f"[torch] meshard has no dtype for {dtype}") from None


def to_torch(dtype):
    """The dtype of PyTorch for one of meshard."""
    found = _TO_TORCH.get(dtype)
    if found is None:  # by its name, which is slow to make
        found = _TO_TORCH[dtype] = _TO_TORCH[str(dtype)]
    return found


class Promotion(enum.Enum):
    """How the dtype of an element-wise result follows from its operands, as in torch._prims_common."""

    DEFAULT = enum.auto()
    """The promoted dtype."""
    INT_TO_FLOAT = enum.auto()
    """The promoted dtype; the default float type for integers and booleans."""
    ALWAYS_BOOL = enum.auto()
    """Computed in the promoted dtype; the result is boolean."""
    COMPLEX_TO_FLOAT = enum.auto()
    """Computed in the promoted dtype; a complex result becomes its real type."""
    BOOL_TO_INT = enum.auto()
    """The promoted dtype; int64 for booleans."""


def _category(dtype):
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype == torch.bool else 1


def _number_dtype(number):
    if isinstance(number, bool):
        return torch.bool
    if isinstance(number, int):
        return torch.int64
    if isinstance(number, float):
        return torch.get_default_dtype()
    return torch.complex128 if torch.get_default_dtype() == torch.float64 else torch.complex64


def promoted(operands):
    """The promoted dtype of tensors of meshard and Python numbers.

    Tensors with dimensions decide first, then those without, then numbers; a later group counts only if its kind (bool,
    integer, float, complex) is higher (https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc).
    """
    groups = [None, None, None]
    for operand in operands:
        if isinstance(operand, ms.Tensor):
            group, dtype = 0 if operand.ndim else 1, to_torch(operand.dtype)
        else:
            group, dtype = 2, _number_dtype(operand)
        groups[group] = dtype if groups[group] is None else torch.promote_types(groups[group], dtype)
    result = None
    for dtype in groups:
        if dtype is None:
            continue
        if result is None or _category(dtype) > _category(result):
            # A complex number beside a float tensor takes that tensor's precision.
            result = dtype if result is None or not dtype.is_complex or not result.is_floating_point \
                else torch.promote_types(result, torch.complex32 if result == torch.float16 else torch.complex64)
    return result


def computed_and_result(operands, promotion):
    """The dtype in which an element-wise operation is computed, and that of its result."""
    dtype = promoted(operands)
    if promotion is Promotion.INT_TO_FLOAT and _category(dtype) < 2:
        dtype = torch.get_default_dtype()
    if promotion is Promotion.BOOL_TO_INT and dtype == torch.bool:
        dtype = torch.int64
    if promotion is Promotion.ALWAYS_BOOL:
        return dtype, torch.bool
    if promotion is Promotion.COMPLEX_TO_FLOAT and dtype.is_complex:
        return dtype, dtype.to_real()
    return dtype, dtype
