"""Helpers of lowerings: operands in one dtype, dimensions, reductions."""

import contextvars

import torch

import meshard as ms

from .._dtypes import Promotion, computed_and_result, to_meshard, to_torch


manual_mesh = contextvars.ContextVar("manual_mesh", default=None)
"""The mesh over which operations are recorded for the values of each rank; None: for whole values."""


def array(value, dtype=None):
    """A constant that is known while the program is recorded."""
    made = ms.asarray(value) if dtype is None else ms.asarray(value, dtype=dtype)
    mesh = manual_mesh.get()
    return made if mesh is None else ms.mark_manual_sharding(made, mesh)


def as_dtype(value, dtype):
    """A tensor, or a number, as a tensor of a dtype of PyTorch."""
    if not isinstance(value, ms.Tensor):
        return ms.full((), _in_range(value, dtype), dtype=to_meshard(dtype))
    return value if to_torch(value.dtype) == dtype else cast(value, dtype)


def as_operand(value, dtype):
    """Like as_dtype() for an operand: an integer beside floats becomes a float, so that one program serves both."""
    if type(value) is int and dtype.is_floating_point and abs(value) <= 1 << 53:
        value = float(value)
    return as_dtype(value, dtype)


def _in_range(number, dtype):
    """A number as PyTorch converts it: integers that are too large lose their upper bits, as in C++."""
    if dtype.is_floating_point or dtype.is_complex or dtype == torch.bool or not isinstance(number, int):
        return number
    limits = torch.iinfo(dtype)
    return (number - limits.min) % (limits.max - limits.min + 1) + limits.min


def is_number(value, number):
    """Whether a factor is this number; false if it is known only when the program runs."""
    return not isinstance(value, ms.Tensor) and value == number


def cast(value, dtype):
    """`value.to(dtype)`: floats become integers by truncation, and everything but zero is true."""
    wanted = to_meshard(dtype)
    present = to_torch(value.dtype)
    if present == dtype:
        return value
    if dtype == torch.bool:
        return ms.not_equal(value, ms.zeros_like(value))
    if present.is_complex and not dtype.is_complex:
        value = ms.real(value)
    if dtype.itemsize < 4 and present.is_floating_point and not (dtype.is_floating_point or dtype.is_complex):
        value = ms.astype(value, ms.int64)  # -1.0 becomes 255 in uint8, as in PyTorch
    if dtype == torch.float8_e4m3fn:
        # What is too large, even infinity, becomes the largest number; NaN stays.
        value = value if present.is_floating_point and present.itemsize > 1 else ms.astype(value, ms.float32)
        value = ms.maximum(ms.minimum(value, ms.full_like(value, 448)), ms.full_like(value, -448))
    return ms.astype(value, wanted)


def _one_dtype(operands):
    """The dtype of operands that are tensors of it, or numbers that convert to it; None if promotion must decide.

    A fast path: eager programs call it for each operation.
    """
    dtype = operands[0].dtype if type(operands[0]) is ms.Tensor else None
    for each in operands[1:]:
        if type(each) is ms.Tensor:
            if each.dtype != dtype:
                return None
        elif type(each) not in (int, float) or dtype is None or not to_torch(dtype).is_floating_point:
            return None
    return dtype


def elementwise(function, *operands, promotion=Promotion.DEFAULT):
    """`function` of the operands in the dtype in which PyTorch computes, as a tensor of the dtype that it returns."""
    dtype = _one_dtype(operands)
    if dtype is not None:
        own = to_torch(dtype)
        if promotion is Promotion.DEFAULT or promotion is Promotion.INT_TO_FLOAT and own.is_floating_point:
            return function(*(each if type(each) is ms.Tensor else as_operand(each, own) for each in operands))
    computed, result = computed_and_result(operands, promotion)
    made = function(*(as_operand(each, computed) for each in operands))
    return as_dtype(made, result)


def wide(function):
    """The same function, computed in float32 for narrower dtypes."""

    def computed(*operands):
        dtype = to_torch(operands[0].dtype)
        if dtype in (torch.float16, torch.bfloat16):
            return cast(function(*(cast(each, torch.float32) for each in operands)), dtype)
        return function(*operands)

    return computed


def dimension(dim, rank):
    """A dimension counted from the front; a tensor without dimensions counts as one of size 1."""
    size = max(rank, 1)
    if not -size <= dim < size:
        raise IndexError(f"[torch] dimension {dim} of a tensor with {rank} dimensions")
    return dim % size


def dimensions(dims, rank):
    """A tuple of dimensions; all of them for None and for an empty list."""
    if dims is None:
        return tuple(range(rank))
    if isinstance(dims, int):
        dims = (dims,)
    return tuple(dimension(each, rank) for each in dims) if len(dims) and rank else tuple(range(rank))
