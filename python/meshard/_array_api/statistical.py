"""Statistical functions: reductions over dimensions, all by default, and cumulative ones."""

from .common import ops
from .creation import as_tensor

__all__ = ["cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum", "var"]


def _in_dtype(x, dtype):
    return x if dtype is None else ops.astype(x, dtype)


def _reduced(op, x, dtype, axis, keepdims):
    result = op(_in_dtype(x, dtype), axis, keepdims)
    return result if dtype is None or result.dtype == dtype else ops.astype(result, dtype)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum of the elements. Bools and narrow integers are summed in int32 or uint32 by default.

    `axis` is a dimension, a tuple of them, or None for all; `keepdims` keeps them with size 1.

        >>> ms.sum(ms.asarray([[1, 2], [3, 4]]), axis=0).tolist()
        [4, 6]
    """
    return _reduced(ops.sum, x, dtype, axis, keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product of the elements. Bools and narrow integers are multiplied in int32 or uint32 by default.

    >>> ms.prod(ms.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [3, 8]
    """
    return _reduced(ops.prod, x, dtype, axis, keepdims)


def max(x, /, *, axis=None, keepdims=False):
    """The largest element; NaN if any is NaN.

    >>> ms.max(ms.asarray([[1, 2], [3, 4]]), axis=1, keepdims=True).tolist()
    [[2], [4]]
    """
    return ops.max(x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The smallest element; NaN if any is NaN.

    >>> ms.min(ms.asarray([[1, 2], [3, 0]]), axis=1).tolist()
    [1, 0]
    """
    return ops.min(x, axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    """The mean of the elements.

    >>> ms.mean(ms.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=1).tolist()
    [1.5, 3.5]
    """
    return ops.mean(x, axis, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The variance: the mean square distance to the mean, divided by n - correction.

    >>> ms.var(ms.asarray([1.0, 3.0])).item(), ms.var(ms.asarray([1.0, 3.0]), correction=1).item()
    (1.0, 2.0)
    """
    return ops.var(x, axis, correction, keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The standard deviation: the square root of the variance.

    >>> ms.std(ms.asarray([1.0, 3.0])).item(), round(ms.std(ms.asarray([1.0, 3.0]), correction=1).item(), 4)
    (1.0, 1.4142)
    """
    return ops.std_dev(x, axis, correction, keepdims)


def _cumulative(op, x, axis, dtype, include_initial, initial):
    x = as_tensor(x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"a cumulative function of a tensor of rank {x.ndim} needs axis=")
        axis = 0
    result = op(_in_dtype(x, dtype), axis)
    if dtype is not None and result.dtype != dtype:
        result = ops.astype(result, dtype)
    if include_initial:
        shape = list(x.shape)
        shape[axis] = 1
        result = ops.concat([ops.full(tuple(shape), initial, result.dtype), result], axis)
    return result


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """The sums of the first elements along a dimension; with `include_initial` beginning with 0.

    >>> ms.cumulative_sum(ms.asarray([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    return _cumulative(ops.cumulative_sum, x, axis, dtype, include_initial, 0)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The products of the first elements along a dimension; with `include_initial` beginning with 1."""
    return _cumulative(ops.cumulative_prod, x, axis, dtype, include_initial, 1)
