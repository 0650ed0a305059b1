"""Nodes that are not operations on tensors: numbers read from tensors, and marks of PyTorch's profiler."""

import math

import torch

import meshard as ms

from .._table import lowering_of, lowers
from ._helpers import as_dtype, elementwise


@lowers("aten._local_scalar_dense")
def local_scalar(x):
    """A number that is only known when the program runs stays a tensor without dimensions."""
    return x


@lowers("aten._assert_tensor_metadata")
def assert_tensor_metadata(*_, **__):
    """Checks of dtypes and layouts in exported programs do nothing: a captured program has fixed ones."""
    return None


@lowers("aten._assert_async", "aten._assert_async.msg", "aten._assert_scalar", "aten._functional_assert_async.msg")
def assert_async(*_):
    """Does nothing: a program cannot raise errors that depend on elements."""
    return None


@lowers("profiler._record_function_enter_new", "profiler._record_function_exit._RecordFunction")
def record_function(*_):
    return None


@lowers("with_effects")
def with_effects(token, operation, *args, **kwargs):
    """An operation that AOTAutograd keeps in order, and the token for the next one."""
    function = lowering_of(operation)
    if function is None:
        raise NotImplementedError(f"[torch] {operation} has no lowering to meshard")
    made = function(*args, **kwargs)
    return (token, *made) if isinstance(made, (tuple, list)) else (token, made)


@lowers("aten.sym_size.int")
def size_of(x, dim):
    return x.shape[dim]


@lowers("aten.sym_numel")
def element_count(x):
    return math.prod(x.shape)


def _on_numbers(of_tensors, of_numbers):
    """A function of numbers, some of which are known only when the program runs."""

    def function(*operands):
        if any(isinstance(each, ms.Tensor) for each in operands):
            return of_tensors(*operands)
        return of_numbers(*operands)

    return function


def _chosen(condition, a, b):
    return elementwise(lambda a, b: ms.where(condition, a, b), a, b)


lowers("torch.sym_ite")(_on_numbers(_chosen, lambda condition, a, b: a if condition else b))
lowers("torch.sym_max")(_on_numbers(lambda a, b: elementwise(ms.maximum, a, b), max))
lowers("torch.sym_min")(_on_numbers(lambda a, b: elementwise(ms.minimum, a, b), min))
lowers("torch.sym_float")(_on_numbers(lambda x: as_dtype(x, torch.float64), float))
lowers("torch._sym_sqrt")(_on_numbers(lambda x: ms.sqrt(as_dtype(x, torch.float64)), math.sqrt))
