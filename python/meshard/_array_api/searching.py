"""Searching: positions and counts of elements."""

from .common import made_by_numpy, ops, read
from .creation import as_tensor

__all__ = ["argmax", "argmin", "count_nonzero", "nonzero", "searchsorted", "where"]


def argmax(x, /, *, axis=None, keepdims=False):
    """The index of the largest element along a dimension, of equal ones the first; without one in row-major order.

    >>> ms.argmax(ms.asarray([[1, 5], [7, 2]]), axis=1).tolist()
    [1, 0]
    """
    return ops.argmax(x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """The index of the smallest element along a dimension, of equal ones the first; without one in row-major order.

    >>> ms.argmin(ms.asarray([[3, 1], [0, 2]]), axis=1).tolist()
    [1, 0]
    """
    return ops.argmin(x, axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """The number of elements that are not zero, along dimensions.

    >>> ms.count_nonzero(ms.asarray([[0, 1], [2, 3]]), axis=0).tolist()
    [1, 2]
    """
    return ops.count_nonzero(x, axis, keepdims)


def nonzero(x, /):
    """The indices of the elements that are not zero: for each dimension a vector. It reads the elements.

    @error a traced value: the number of indices is not known

    >>> [index.tolist() for index in ms.nonzero(ms.asarray([[0, 1], [2, 0]]))]
    [[0, 1], [1, 0]]
    """
    x = as_tensor(x)
    if x.ndim == 0:
        raise ValueError("nonzero of a tensor of rank 0")
    found = read(x, "nonzero of a traced value: the shape of the result depends on the elements; use where() or "
                    "top_k() with a fixed size inside jit").nonzero()
    dtype = "int32" if max(x.shape, default=0) < 2**31 else "int64"
    return tuple(made_by_numpy(each.astype(dtype)) for each in found)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """The index at which each element of x2 is inserted into the ascending vector x1: before or after equal ones.

    >>> ms.searchsorted(ms.asarray([1, 3, 5]), ms.asarray([3, 4])).tolist()
    [1, 2]
    """
    return ops.searchsorted(x1, x2, side, sorter)


def where(condition, x1, x2, /):
    """The elements of x1 where the condition is true, otherwise those of x2.

    >>> ms.where(ms.asarray([True, False]), 1.0, ms.asarray([5.0, 6.0])).tolist()
    [1.0, 6.0]
    """
    return ops.where(condition, x1, x2)
